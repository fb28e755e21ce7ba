//! The records, and one command at a time upon them. Synchronous: the simulator drives it too.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    Digest, JobId, Number, RequestId, Timestamp,
    blob::Blob,
    history::Event,
    job::Job,
    lease::{Moment, Start},
};

use crate::{
    command::{Answer, Command},
    failure::Failure,
    lease_book::LeaseBook,
    ops,
    tables::{HeldLeases, Keeper, Recorded, Scope},
};

/// All records of a store, in memory.
#[derive(Debug, Default)]
pub struct MemoryEngine {
    pub(super) counter: Number0,
    pub(super) jobs: BTreeMap<JobId, Job>,
    pub(super) blobs: BTreeMap<(Digest, Number), Blob>,
    pub(super) keepers: BTreeSet<(Keeper, Digest, Number)>,
    pub(super) requests: BTreeMap<(Scope, RequestId), Recorded>,
    pub(super) journal: Vec<Event>,
    pub(super) book: LeaseBook,
    pub(super) clock: Timestamp,
    life: u64,
    announced: usize,
}

/// A counter that starts at zero.
#[derive(Debug)]
pub(super) struct Number0(pub(super) Number);

impl Default for Number0 {
    fn default() -> Self {
        Self(Number::ZERO)
    }
}

impl MemoryEngine {
    /// An empty store, in its first life.
    pub fn new(now: Timestamp) -> Self {
        Self { clock: now, life: 1, ..Self::default() }
    }

    /// Runs one command.
    pub fn apply(&mut self, command: Command, now: Timestamp) -> Result<Answer, Failure> {
        let now = Moment { at: now, life: self.life };
        let outcome = ops::apply(self, command, now);
        self.book.commit(|_, _| {});
        match outcome {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(refusal)) => Err(refusal.into()),
            Err(fault) => Err(Failure::Unavailable(fault.to_string())),
        }
    }

    /// A start after a time that was not served: only time in which the store served counts
    /// against a lease.
    pub fn start(&mut self, now: Timestamp) {
        let past_life = self.life;
        self.life += 1;
        let now = Moment { at: now.max(self.clock), life: self.life };
        let start = Start { past_life, recorded_at: self.clock, now };
        for (token, lease) in self.book.after_start(start) {
            self.book.set_lease(token, lease);
        }
        self.book.commit(|_, _| {});
        self.clock = now.at;
    }

    /// What was appended to the journal since the last call.
    pub fn take_announcements(&mut self) -> Vec<Event> {
        let news = self.journal[self.announced..].to_vec();
        self.announced = self.journal.len();
        news
    }
}
