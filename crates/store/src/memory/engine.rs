//! The records, and one command at a time upon them. Synchronous: the simulator drives it too.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use palisade_core::{
    Digest, JobId, LockName, Number, ObjectKey, RequestId, Timestamp,
    blob::{Blob, collect::Case},
    history::Event,
    job::Job,
    lease::{Moment, Start},
    lock::{Lock, LockGrant},
    object::Object,
    outbox::{Delivery, Endpoint, EndpointId},
};

use crate::{
    command::{Answer, Command},
    failure::Failure,
    lease_book::LeaseBook,
    lock_book::LockBook,
    ops,
    tables::{HeldLeases, Keeper, Recorded, Scope},
};

/// All records of a store, in memory.
#[derive(Debug, Default)]
pub struct MemoryEngine {
    pub(super) counter: Number0,
    /// Numbers that are drawn before the counter rises by itself.
    pub(super) given: VecDeque<Number>,
    pub(super) jobs: BTreeMap<JobId, Job>,
    pub(super) blobs: BTreeMap<(Digest, Number), Blob>,
    pub(super) keepers: BTreeSet<(Keeper, Digest, Number)>,
    pub(super) cases: BTreeMap<(Digest, Number), Case>,
    pub(super) released: BTreeSet<JobId>,
    /// Each with when it was given.
    pub(super) requests: BTreeMap<(Scope, RequestId), (Timestamp, Recorded)>,
    /// By position; the first is 1.
    pub(super) journal: BTreeMap<u64, Event>,
    /// The last position that was given.
    pub(super) position: u64,
    /// Up to this position entries may be missing.
    pub(super) pruned: u64,
    pub(super) book: LeaseBook,
    /// Locks as a disk would have them.
    pub(super) locks: BTreeMap<LockName, Lock>,
    pub(super) lock_grants: BTreeMap<Number, LockGrant>,
    pub(super) lock_book: LockBook,
    pub(super) objects: BTreeMap<ObjectKey, Object>,
    pub(super) endpoints: BTreeMap<EndpointId, Endpoint>,
    pub(super) outbox: BTreeMap<Number, Delivery>,
    pub(super) publications_due: BTreeMap<Number, JobId>,
    pub(super) clock: Timestamp,
    /// Whether the running command has written anything that a disk would keep.
    pub(super) wrote: bool,
    /// When the running command began.
    pub(super) now: Timestamp,
    life: u64,
    announced: u64,
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

    /// Takes its next numbers from here: those that another engine has drawn for the same commands.
    #[cfg(all(test, feature = "postgres"))]
    pub(crate) fn draw_these(&mut self, numbers: impl IntoIterator<Item = Number>) {
        self.given.extend(numbers);
    }

    /// How many of them are left.
    #[cfg(all(test, feature = "postgres"))]
    pub(crate) fn undrawn(&self) -> usize {
        self.given.len()
    }

    /// Runs one command.
    pub fn apply(&mut self, command: Command, now: Timestamp) -> Result<Answer, Failure> {
        let now = Moment { at: now, life: self.life };
        self.wrote = false;
        self.now = now.at;
        let outcome = ops::apply(self, command, now);
        self.book.commit(|_, _| {});
        self.lock_book.commit(|_, _| {});
        if self.wrote {
            self.clock = self.clock.max(now.at);
        }
        match outcome {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(refusal)) => Err(refusal.into()),
            Err(fault) => Err(Failure::Unavailable(fault.to_string())),
        }
    }

    /// A restart, as a store with a disk has it: renewals and suspicions that lived in memory are
    /// forgotten, and time that was not served is given back to every lease.
    pub fn start(&mut self, now: Timestamp) {
        self.book = LeaseBook::default();
        for job in self.jobs.values() {
            self.book.follow(job);
        }
        self.lock_book = LockBook::default();
        for lock in self.locks.values() {
            self.lock_book.follow(lock);
        }
        self.begin_life(self.clock, now);
    }

    /// Waking from a gap in which it did not serve, the last time before it being `served_at`.
    /// Counts as a start, but memory is still there.
    pub fn wake(&mut self, served_at: Timestamp, now: Timestamp) {
        self.begin_life(served_at, now);
    }

    fn begin_life(&mut self, recorded_at: Timestamp, now: Timestamp) {
        let past_life = self.life;
        self.life += 1;
        let now = Moment { at: now.max(self.clock), life: self.life };
        for lock in self.lock_book.after_start(Start { past_life, recorded_at, now }) {
            self.lock_book.follow(&lock);
            self.locks.insert(lock.name.clone(), Lock { waiters: Vec::new(), ..lock });
        }
        self.lock_book.commit(|_, _| {});
        for (token, lease) in self.book.after_start(Start { past_life, recorded_at, now }) {
            let job = self.book.get(token).expect("it was just told of").job;
            self.book.set_lease(token, lease);
            let job = self.jobs.get_mut(&job).expect("what is held is of a job");
            let attempt = job.attempts.iter_mut().find(|attempt| attempt.token == token);
            attempt.expect("what is held is an attempt").lease = lease;
        }
        self.book.commit(|_, _| {});
        self.clock = now.at;
    }

    /// What was appended to the journal since the last call.
    pub fn take_announcements(&mut self) -> Vec<Event> {
        let news = self.journal.range(self.announced + 1..).map(|(_, event)| event.clone());
        let news = news.collect();
        self.announced = self.position;
        news
    }
}
