//! `lock`: runs a command under a lock.

mod held;

use std::{ffi::OsString, process::ExitCode, sync::Arc};

use palisade_api::{
    Client, ClientError, LockGuard,
    guard::{Edge, LockWish},
};
use palisade_core::{HolderName, LockName};
use palisade_worker::{clock::BoottimeClock, entropy::OsEntropy};

use crate::{args::Common, exit, output, signals::PassedSignals, span::Span};

use super::{client, locks};

/// What `--help` says at its end.
const HELP: &str = "The command sees PALISADE_TOKEN and PALISADE_LEASE (show both at every \
effect), PALISADE_LOCK and PALISADE_SERVER. It keeps the terminal and the standard streams. While \
nobody confirms the lock it is stopped (SIGSTOP); when the lock is lost it is killed with all that \
it started; what it leaves running when it ends is ended before the lock is released. INT, TERM, \
HUP, QUIT, USR1 and USR2 are passed on to it.

Exit codes: the command's own (128+N if signal N ended it; 126 it cannot be run; 127 it is not \
found), or 117 the lock is held by somebody else (the command was not started); 118 the lock was \
lost before it was released (the command was killed); 119 the server cannot be reached (the \
command was not started); 2 bad usage.";

/// Flags of `lock`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct LockArgs {
    /// The lock's name; may have parts between slashes.
    name: LockName,
    /// How long the lock is kept without renewal: the longest that a crash holds others up.
    #[arg(long, default_value = "30s", value_name = "SPAN")]
    ttl: Span,
    /// How long to wait while somebody else holds it, or the server is away.
    #[arg(long, default_value = "0s", value_name = "SPAN", conflicts_with = "no_wait")]
    wait: Span,
    /// Do not wait. That is so without --wait; it says it.
    #[arg(long)]
    no_wait: bool,
    /// Who holds it, for those who look; this machine's name and this process if not given.
    #[arg(long, value_name = "NAME")]
    holder: Option<HolderName>,
    /// How long the command is kept stopped while nobody confirms the lock.
    #[arg(long, default_value = "5m", value_name = "SPAN")]
    doubt_grace: Span,
    /// Say nothing when the lock is not to be had; the exit code does.
    #[arg(short, long)]
    quiet: bool,
    /// Show who holds the lock and who waits, and run nothing.
    #[arg(long, conflicts_with = "command")]
    inspect: bool,
    /// The command, after `--`, and its arguments. No shell is in between.
    #[arg(last = true, required_unless_present = "inspect", value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) async fn run(args: LockArgs, common: Common) -> anyhow::Result<ExitCode> {
    let client = client(&common)?;
    if args.inspect {
        return locks::inspect(&client, &args.name, &common).await;
    }
    let mut signals = PassedSignals::listen()?;
    let guard = tokio::select! {
        biased;
        // The request is dropped with it: the server sees that nobody waits any more.
        signal = signals.next() => return Ok(held::ended_by(signal.as_raw())),
        guard = acquire(&client, &args) => guard,
    };
    match guard {
        Ok(guard) => held::run(guard, args.command, client.url(), signals).await,
        Err(error) => not_acquired(error, &args, common.json),
    }
}

async fn acquire(client: &Client, args: &LockArgs) -> Result<LockGuard, ClientError> {
    let wish = LockWish {
        name: args.name.clone(),
        holder: args.holder.clone().unwrap_or_else(this_process),
        ttl_ms: args.ttl.ms(),
        wait_ms: if args.no_wait { 0 } else { args.wait.ms() },
        doubt_grace_ms: args.doubt_grace.ms(),
    };
    let edge = Edge { clock: Arc::new(BoottimeClock), entropy: Arc::new(OsEntropy) };
    LockGuard::acquire(client, wish, edge).await
}

fn not_acquired(error: ClientError, args: &LockArgs, json: bool) -> anyhow::Result<ExitCode> {
    let code = match &error {
        error if error.code() == Some("held") => exit::NOT_ACQUIRED,
        ClientError::Refused(problem) if matches!(problem.status, 401 | 403) => {
            return Err(error.into());
        }
        error if error.is_unconfirmed() => exit::LOCK_UNREACHABLE,
        _ => return Err(error.into()),
    };
    let error = anyhow::Error::new(error).context(format!("lock {} was not acquired", args.name));
    if !(args.quiet && code == exit::NOT_ACQUIRED) {
        // The code that it would have elsewhere is not this verb's.
        let _elsewhere = exit::report(&error, json);
    }
    Ok(ExitCode::from(code))
}

fn this_process() -> HolderName {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let pid = std::process::id();
    let named = format!("{machine}:{pid}").parse();
    named.unwrap_or_else(|_| format!("palisade:{pid}").parse().expect("letters and digits"))
}

/// A line for people about the lock, on standard error.
fn say(name: &LockName, what: &str) {
    output::note(&format!("palisade: lock {name} {what}"));
}
