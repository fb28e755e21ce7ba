//! The command while the lock is held: frozen in doubt, killed with all that it started on a loss.

use std::{collections::BTreeMap, ffi::OsString, process::ExitCode};

use palisade_api::{
    ClientError, LockGuard,
    guard::{LockState, Loss},
};
use palisade_core::{LockName, Timestamp};
use palisade_worker::process::{
    AttachedSpec, Child, ChildControl, Exit, NannyCommand, Supervisor, is_in_foreground,
};
use rustix::process::Signal;
use tokio::sync::broadcast::error::RecvError;

use crate::{exit, output, signals::PassedSignals};

use super::say;

/// The exit code of a command that cannot be run, as shells have it.
const CANNOT_RUN: u8 = 126;

/// What came of the command.
struct Ran {
    exit: Exit,
    loss: Option<Loss>,
    /// The signal for which a frozen command was killed: it could not have heard it.
    killed_for: Option<Signal>,
}

pub(super) async fn run(
    guard: LockGuard,
    command: Vec<OsString>,
    server: &str,
    mut signals: PassedSignals,
) -> anyhow::Result<ExitCode> {
    let name = guard.name().clone();
    let pair = guard.pair();
    let environment = BTreeMap::from([
        ("PALISADE_TOKEN".to_owned(), pair.token.to_string()),
        ("PALISADE_LEASE".to_owned(), pair.lease_id.to_string()),
        ("PALISADE_LOCK".to_owned(), name.to_string()),
        ("PALISADE_SERVER".to_owned(), server.to_owned()),
    ]);
    let supervisor = Supervisor::new(NannyCommand::this_program(&[crate::NANNY]));
    let run_until = Some(*guard.trusted_until().borrow());
    let spec = AttachedSpec { argv: command, environment, run_until };
    let ran = match supervisor.spawn_attached(spec).await {
        Ok(child) => watch_over(&guard, child, &mut signals).await,
        Err(error) => {
            output::complain(&format!("palisade: {:#}", anyhow::Error::new(error)));
            // Nothing ran, and what becomes of the release changes nothing of that.
            let _ = guard.release().await;
            return Ok(ExitCode::from(CANNOT_RUN));
        }
    };
    let released = guard.release().await;
    Ok(ended(&name, &ran, released))
}

/// Runs until the command has ended and nothing that it started is left.
async fn watch_over(guard: &LockGuard, mut child: Child, signals: &mut PassedSignals) -> Ran {
    let control = child.control();
    let (state, mut changes) = (guard.state(), guard.changes());
    // Should this process be stopped, the command must not run on when the lock has gone.
    let mut trusted = guard.trusted_until();
    trusted.mark_changed();
    // At a terminal, its keys reach the command without us.
    let keys_reach_it = is_in_foreground();
    let (mut frozen, mut loss, mut killed_for) = (false, None, None);
    // What became of the lock while the command was started counts as well.
    let mut next = Some(state.borrow().clone());
    let exit = loop {
        if let Some(now) = next.take() {
            let until = *trusted.borrow();
            frozen = follow(guard.name(), &control, (&now, until), frozen);
            if let LockState::Lost(why) = now {
                loss = Some(why);
            }
        }
        tokio::select! {
            biased;
            change = changes.recv(), if loss.is_none() => next = Some(match change {
                Ok(change) => change,
                // The latest is what counts.
                Err(RecvError::Lagged(_) | RecvError::Closed) => state.borrow().clone(),
            }),
            Ok(()) = trusted.changed(), if loss.is_none() => {
                control.run_until(*trusted.borrow_and_update());
            }
            exit = child.wait() => break exit,
            signal = signals.next() => {
                if frozen && ends(signal) {
                    control.kill();
                    killed_for = Some(signal);
                } else if !(keys_reach_it && matches!(signal, Signal::INT | Signal::QUIT)) {
                    control.signal(signal);
                }
            }
        }
    };
    Ran { exit, loss, killed_for }
}

/// Does to the command what the lock's state demands. Answers whether it is frozen.
fn follow(
    name: &LockName,
    control: &ChildControl,
    (state, trusted_until): (&LockState, Timestamp),
    frozen: bool,
) -> bool {
    match state {
        LockState::Held => {
            if frozen {
                control.run_until(trusted_until);
                control.thaw();
                say(name, "is confirmed again: the command goes on");
            }
            false
        }
        LockState::Doubt => {
            control.freeze();
            say(name, "is in doubt: the command is stopped until it is confirmed");
            true
        }
        LockState::Lost(_) => {
            control.kill();
            frozen
        }
    }
}

fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT)
}

fn ended(name: &LockName, ran: &Ran, released: Result<(), ClientError>) -> ExitCode {
    if let Some(loss) = &ran.loss {
        say(name, &format!("is lost, the command was killed: {loss}"));
        return ExitCode::from(exit::LOST);
    }
    match released {
        Ok(()) => {}
        Err(error) if matches!(error.code(), Some("lease_lost" | "unknown_token")) => {
            say(name, &format!("was lost before the command had ended: {error}"));
            return ExitCode::from(exit::LOST);
        }
        Err(error) => {
            let error = anyhow::Error::new(error);
            say(name, &format!("could not be released, and ends with its ttl: {error:#}"));
        }
    }
    if let Some(signal) = ran.killed_for {
        return ended_by(signal.as_raw());
    }
    match ran.exit {
        Exit::Code(code) => ExitCode::from(u8::try_from(code & 0xff).expect("masked to 8 bits")),
        Exit::Signal(signal) => ended_by(signal),
        // Somebody killed the process that watches over it, and with it the command.
        Exit::NannyLost => ended_by(Signal::KILL.as_raw()),
    }
}

/// The exit code of what a signal ended, as shells have it.
pub(super) fn ended_by(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + (signal & 0x7f)).expect("at most 255"))
}
