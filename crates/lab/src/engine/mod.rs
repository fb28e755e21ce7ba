//! What a simulated server keeps its records in: one seam for every design and every store.
//!
//! A batch is some `apply`s and one `commit`. A crash between them forgets the batch; a crash
//! after the commit forgets nothing but what lives in memory alone.

mod crash;
mod lies;
mod lock;
mod sqlite;

pub use crash::CrashEngine;
pub use lies::Lie;
pub use lock::LockEngine;
pub use sqlite::SqliteRecords;

use palisade_core::{JobId, Timestamp, job::Job};
use palisade_store::{
    Failure,
    command::{Answer, Command},
    query::{JobFilter, Query, View},
};

use crate::sim::Setting;

/// Records, and the rules over them.
pub trait Engine: std::fmt::Debug {
    /// Decides one command. Its result is not durable before the next `commit`, except where the
    /// engine [commits by itself](Self::commits_by_itself).
    fn apply(&mut self, command: &Command, now: Timestamp) -> Result<Answer, Failure>;

    /// Decides commands that came together, each honestly.
    fn apply_all(&mut self, commands: &[Command], now: Timestamp) -> Vec<Result<Answer, Failure>> {
        commands.iter().map(|command| self.apply(command, now)).collect()
    }

    /// Whether what is applied is durable at once, so that a crash cannot come in between.
    fn commits_by_itself(&self) -> bool {
        false
    }

    /// Makes everything applied so far durable.
    fn commit(&mut self);

    /// Decides commands and dies while it writes them; `chance` (random) says how far it came.
    /// An engine whose batches are one step leaves nothing of them. [`crash`](Self::crash) follows.
    /// Answers what nobody hears any more.
    fn die_within(
        &mut self,
        _commands: &[Command],
        _now: Timestamp,
        _chance: u64,
    ) -> Vec<Result<Answer, Failure>> {
        Vec::new()
    }

    /// The process died: what is not durable is gone.
    fn crash(&mut self);

    /// A start after a time that was not served. Answers the instant at which the server's clock
    /// starts: never before what was recorded.
    fn start(&mut self, now: Timestamp) -> Timestamp;

    /// Reads what was committed.
    fn query(&self, query: &Query) -> View;

    /// Does what an honest dispatch layer never does. None: this engine does not know how.
    fn lie(&mut self, lie: &Lie, now: Timestamp) -> Option<Answer>;

    /// The disk takes no further write during the next command.
    fn fill_disk(&mut self);
}

/// The empty store of a run.
pub fn open(setting: Setting, now: Timestamp) -> Box<dyn Engine> {
    if setting.sqlite && setting.design.is_palisade() && setting.broken.is_none() {
        return Box::new(SqliteRecords::new(now));
    }
    setting.design.engine(now, setting.broken)
}

/// One job as committed.
pub fn job_of(engine: &dyn Engine, id: JobId) -> Option<Job> {
    match engine.query(&Query::Job(id)) {
        View::Job(job) => job.map(|job| *job),
        _ => None,
    }
}

/// All jobs as committed, oldest first.
pub fn jobs_of(engine: &dyn Engine) -> Vec<Job> {
    let everything = JobFilter { limit: usize::MAX, ..JobFilter::default() };
    let View::Jobs(mut jobs) = engine.query(&Query::Jobs(everything)) else { return Vec::new() };
    jobs.reverse();
    jobs
}
