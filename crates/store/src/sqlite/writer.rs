//! The writer's thread: takes whatever requests are waiting, runs them as one batch, answers all
//! after the commit. Nothing else happens on it, so that nothing else delays a commit.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use tokio::sync::oneshot;

use crate::{
    command::{Answer, Command},
    events::Announcer,
    failure::Failure,
};

use super::{clock::StoreClock, engine::SqliteEngine, renewals::Renewals};

/// Commands of one call, and where their answers go.
pub(super) struct Request {
    pub(super) commands: Vec<Command>,
    pub(super) reply: oneshot::Sender<Vec<Result<Answer, Failure>>>,
}

/// Most commands in a transaction, unless one request alone has more: whoever comes first waits
/// for the last.
const COMMANDS_MAX: usize = 1_000;
/// For how long a batch of those who only join a queue waits for company. A queue moves at its
/// holder's release, which would otherwise wait for a commit that nobody is in a hurry for.
const PATIENCE: Duration = Duration::from_millis(1);
/// How often the clock is recorded and spent jobs are given up, in ms.
const TICK_MS: u64 = 1_000;

/// The writer and what it tells others.
pub(super) struct Writer {
    pub(super) engine: SqliteEngine,
    pub(super) clock: Arc<StoreClock>,
    pub(super) announcer: Announcer,
    pub(super) renewals: Arc<Renewals>,
}

impl Writer {
    /// Serves until every sender has gone.
    pub(super) fn serve(mut self, requests: &Receiver<Request>) {
        let mut ticked_at = self.clock.now();
        loop {
            let mut waiting = match requests.recv_timeout(Duration::from_millis(TICK_MS)) {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.gather(requests, &mut waiting);
            let now = self.clock.now();
            let tick = waiting.is_empty() || now.since_ms(ticked_at) >= TICK_MS;
            if tick {
                ticked_at = now;
            }
            self.run(waiting, tick);
        }
        let now = self.clock.now();
        if let Err(failure) = self.engine.close(now) {
            tracing::warn!(%failure, "the clock could not be recorded at the end");
        }
    }

    /// Takes whatever else is waiting.
    fn gather(&self, requests: &Receiver<Request>, waiting: &mut Vec<Request>) {
        let mut commands: usize = waiting.iter().map(|request| request.commands.len()).sum();
        let mut patience = Some(PATIENCE);
        while commands < COMMANDS_MAX {
            let next = match requests.try_recv() {
                Ok(next) => next,
                Err(_) if waiting.is_empty() || !self.all_can_wait(waiting) => break,
                // Once: whoever joins must not wait for all who join after.
                Err(_) => match patience.take().map(|time| requests.recv_timeout(time)) {
                    Some(Ok(next)) => next,
                    _ => break,
                },
            };
            commands += next.commands.len();
            waiting.push(next);
        }
    }

    fn all_can_wait(&self, waiting: &[Request]) -> bool {
        let mut commands = waiting.iter().flat_map(|request| &request.commands);
        commands.all(|command| self.engine.can_wait(command))
    }

    /// Runs the waiting requests as one batch.
    fn run(&mut self, waiting: Vec<Request>, tick: bool) {
        let mut commands = Vec::new();
        if tick {
            commands.push(Command::Tick);
        }
        let mut replies = Vec::with_capacity(waiting.len());
        for request in waiting {
            replies.push((request.commands.len(), request.reply));
            commands.extend(request.commands);
        }
        let batch = self.engine.apply_batch(commands, self.clock.now());
        self.renewals.follow(self.engine.take_changed_leases());
        let mut answers = batch.answers.into_iter().skip(usize::from(tick));
        for (count, reply) in replies {
            // Whoever has stopped waiting does not want the answer.
            let _ = reply.send(answers.by_ref().take(count).collect());
        }
        self.announcer.announce(batch.events);
    }
}
