//! The real operations over records that can crash at any point: what is live stands beside what
//! is durable, and a crash leaves the latter.
//!
//! It keeps what a database keeps and loses what a database loses: renewals that live in memory
//! alone, for one. A sabotage, if any, is built in here and nowhere in the product.

mod collection;
mod effects;
mod outbox;
mod records;
mod retention;
mod tables;

pub(crate) use records::Records;

use std::rc::Rc;

use palisade_core::{
    Number, Timestamp,
    history::Event,
    job::Job,
    lease::{Moment, Start},
};
use palisade_store::{
    Failure,
    command::{Answer, Command},
    lease_book::LeaseBook,
    ops,
    query::{JournalSpan, LeaseView, Query, View},
    tables::HeldLeases,
};

use crate::sabotage::{Sabotage, hooks};

use super::{Engine, Lie, lies};

/// Records in memory with a durable copy beside them.
#[derive(Debug, Clone, Default)]
pub struct CrashEngine {
    /// What a crash leaves.
    pub durable: Records,
    /// What the next commit makes durable.
    pub live: Records,
    /// The held leases, with the renewals that no record has.
    pub book: LeaseBook,
    journal: Vec<Event>,
    /// A deliberate fault, for finding out whether it is noticed.
    pub broken: Option<Sabotage>,
    disk_full: bool,
    dirty: bool,
}

impl CrashEngine {
    /// An empty store, in its first life.
    pub fn new(now: Timestamp, broken: Option<Sabotage>) -> Self {
        let records = Records::new(now);
        Self { durable: records.clone(), live: records, broken, ..Self::default() }
    }

    /// The instant of a command, with the store's life.
    pub fn moment(&self, at: Timestamp) -> Moment {
        Moment { at, life: self.live.life }
    }

    /// Whether something was applied that is not durable yet.
    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Runs the real operation, and takes back what a fault left half done.
    fn operate(&mut self, command: Command, now: Timestamp) -> Result<Answer, Failure> {
        let before = self.live.clone();
        let journal_length = self.journal.len();
        let moment = self.moment(now);
        let outcome = ops::apply(self, command, moment);
        self.disk_full = false;
        match outcome {
            Ok(decided) => {
                self.book.commit(|_, _| {});
                self.live.journal_length = self.journal.len();
                decided.map_err(Failure::from)
            }
            Err(fault) => {
                self.book.roll_back_to(0);
                self.journal.truncate(journal_length);
                self.live = before;
                Err(Failure::Unavailable(fault.to_string()))
            }
        }
    }

    /// Puts a record in the place of another, without any rule.
    pub(crate) fn force(&mut self, job: Job) {
        self.book.follow(&job);
        self.book.commit(|_, _| {});
        self.live.jobs.insert(job.id, Rc::new(job));
        self.dirty = true;
    }

    /// Draws a number, as the store does.
    pub(crate) fn draw_number(&mut self) -> Number {
        self.dirty = true;
        self.live.counter = self.live.counter.next();
        self.live.counter
    }

    /// Appends to the journal, as the store does.
    pub(crate) fn journal(&mut self, event: Event) {
        self.journal.push(event);
        self.live.journal_length = self.journal.len();
    }

    /// Makes durable what was changed past the operations: a small world's own transaction.
    pub(crate) fn commit_anyway(&mut self) {
        self.durable = self.live.clone();
        self.dirty = false;
    }

    /// Drops the journal, where nobody reads it: a small world has many states.
    pub(crate) fn forget_journal(&mut self) {
        self.journal.clear();
        self.live.journal_length = 0;
        self.durable.journal_length = 0;
    }

    /// A job as it is now, with the leases as last renewed.
    pub fn job_now(&self, id: palisade_core::JobId) -> Option<Job> {
        self.live.jobs.get(&id).map(|job| self.overlaid(job))
    }

    fn overlaid(&self, job: &Job) -> Job {
        let mut job = job.clone();
        self.book.overlay(&mut job);
        job
    }
}

impl Engine for CrashEngine {
    fn apply(&mut self, command: &Command, now: Timestamp) -> Result<Answer, Failure> {
        let mut command = command.clone();
        if let Some(refused) = hooks::before(self, &mut command, now) {
            return Err(refused);
        }
        let outcome = self.operate(command.clone(), now);
        hooks::after(self, &command, outcome)
    }

    fn commit(&mut self) {
        if self.broken == Some(Sabotage::CommitNotDurable) {
            // The disk said yes and kept it in its cache: every eighth change is really there.
            if !self.journal.len().is_multiple_of(8) {
                return;
            }
        }
        if self.dirty {
            let before = std::mem::replace(&mut self.durable, self.live.clone());
            self.durable.locks_on_disk(&before);
            self.dirty = false;
            if self.broken == Some(Sabotage::RowsApart) && self.live.outbox != before.outbox {
                // They are in a transaction of their own: the next one.
                self.durable.outbox = before.outbox.clone();
                self.dirty = true;
            }
        }
    }

    fn crash(&mut self) {
        self.dirty = false;
        self.live = self.durable.clone();
        self.live.forget_waiters();
        if self.broken == Some(Sabotage::PublicationsInMemory) {
            self.live.publications_due.clear();
        }
        self.journal.truncate(self.live.journal_length);
        if self.broken == Some(Sabotage::TokenReusedAfterRestart) {
            // The counter was kept in memory, and saved now and then.
            let saved = self.live.counter.get() / 4 * 4;
            self.live.counter = Number::new(saved).expect("not above a number");
        }
        self.book = LeaseBook::default();
        for job in self.live.jobs.values() {
            self.book.follow(job);
        }
        self.book.commit(|_, _| {});
    }

    fn start(&mut self, now: Timestamp) -> Timestamp {
        let past_life = self.live.life;
        self.live.life += 1;
        let now = self.moment(now.max(self.live.clock));
        let start = Start { past_life, recorded_at: self.live.clock, now };
        for (token, lease) in hooks::after_start(self, start) {
            self.book.set_lease(token, lease);
        }
        self.book.commit(|_, _| {});
        // What a start decided is in the records before anything is served.
        for job in self.live.jobs.values_mut() {
            if job.has_open_attempt() {
                self.book.overlay(Rc::make_mut(job));
            }
        }
        self.live.locks_after_start(start);
        self.live.clock = now.at;
        self.durable = self.live.clone();
        now.at
    }

    fn query(&self, query: &Query) -> View {
        match query {
            Query::Lock(name) => {
                let lock = self.live.locks.get(name).map(|lock| Box::new((**lock).clone()));
                View::Lock(lock)
            }
            Query::Locks(page) => {
                let all = self.live.locks.values();
                let shown = all.filter(|lock| page.shows(lock.name.as_str()));
                View::Locks(shown.take(page.limit).map(|lock| (**lock).clone()).collect())
            }
            Query::Object(key) => {
                View::Object(self.live.objects.get(key).map(|one| Box::new((**one).clone())))
            }
            Query::Resolve(key) => View::Resolve(self.live.resolved(key)),
            Query::Objects(page) => {
                let all = self.live.objects.values().filter(|one| one.is_readable());
                let shown = all.filter(|one| page.shows(one.key.as_str()));
                View::Objects(shown.take(page.limit).map(|one| (**one).clone()).collect())
            }
            Query::Job(id) => View::Job(self.job_now(*id).map(Box::new)),
            Query::Jobs(_) => {
                View::Jobs(self.live.jobs.values().rev().map(|job| self.overlaid(job)).collect())
            }
            Query::Events { after, limit } => View::Events(
                (*after + 1..)
                    .zip(self.journal.iter().skip(usize::try_from(*after).unwrap_or(usize::MAX)))
                    .take(*limit)
                    .map(|(position, event)| (position, event.clone()))
                    .collect(),
            ),
            Query::History(id) => View::History(
                (1..)
                    .zip(&self.journal)
                    .filter(|(_, event)| event.job() == Some(*id))
                    .map(|(position, event)| (position, event.clone()))
                    .collect(),
            ),
            Query::JournalSpan => {
                let next = self.journal.len() as u64 + 1;
                View::JournalSpan(JournalSpan { pruned: 0, next })
            }
            Query::Blob(digest) => View::Blob(self.live.newest_blob(*digest)),
            Query::Leases => View::Leases(
                self.book
                    .all()
                    .map(|held| LeaseView {
                        token: held.token,
                        job: held.job,
                        worker: held.worker.clone(),
                        session: held.session.clone(),
                        granted_at: held.granted_at,
                        lease: held.lease,
                    })
                    .collect(),
            ),
            Query::Endpoints => {
                let all = self.live.endpoints.values();
                View::Endpoints(all.map(|endpoint| (**endpoint).clone()).collect())
            }
            Query::Deliveries(filter) => {
                let shown = self.live.outbox.values().rev().filter(|row| filter.shows(row));
                View::Deliveries(shown.take(filter.limit).map(|row| (**row).clone()).collect())
            }
            Query::Counts => View::Counts(Vec::new()),
            // The lab's worlds have no collector that asks; its models condemn by themselves.
            Query::Unkept(_) => View::Unkept(Vec::new(), None),
            Query::Cases(_) => View::Cases(self.live.cases.values().copied().collect()),
            Query::PastJobs { .. } => View::PastJobs(Vec::new(), None),
        }
    }

    fn lie(&mut self, lie: &Lie, now: Timestamp) -> Option<Answer> {
        lies::tell(self, lie, now)
    }

    fn fill_disk(&mut self) {
        self.disk_full = true;
    }
}
