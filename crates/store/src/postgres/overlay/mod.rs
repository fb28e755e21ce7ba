//! What one transaction knows: rows as fetched, and what its commands changed of them. The
//! operations run over it as over any other tables; what they ask for and is not there yet they
//! are told to ask for again, once it was fetched.
//!
//! Must not know: the database. Everything in here is memory, so that running the commands again
//! costs nothing that anybody could see.

mod collection;
mod effects;
mod fetched;
mod held;
mod outbox;
mod queue;
mod retention;
mod tables;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
};

use palisade_core::{
    Digest, JobId, LockName, Number, ObjectKey, RequestId, SessionId, Timestamp,
    blob::{Blob, collect::Case},
    history::Event,
    job::Job,
    lease::Moment,
    lock::{Lock, LockGrant},
    object::Object,
};

use crate::{
    command::{Answer, Capability, Command},
    failure::Failure,
    fault::Fault,
    lease_book::{Held, LeaseBook},
    ops,
    tables::{Recorded, Scope},
};

use super::{
    shelf::Shelf,
    wants::{OwnKey, Wants, Which},
};

pub(super) use collection::{KEPT_AT_ONCE, Keeping};
pub(super) use outbox::NEXT_AT_ONCE;
pub(super) use queue::{Place, place_of};

/// A job granted to a claim, and its token.
pub(super) type Grants = Vec<(JobId, Number)>;

/// When time alone will make something claimable, among what was not fetched.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Next {
    /// The earliest `run_at` that is still to come.
    pub(super) run_at: Option<Timestamp>,
    /// Whether a job is due.
    pub(super) due_elsewhere: bool,
    /// The earliest end of a lease.
    pub(super) lapses: Option<Timestamp>,
    /// The earliest instant for a backup.
    pub(super) backup: Option<Timestamp>,
}

/// Whom the running command looks for among the leases.
#[derive(Debug, Clone, Default)]
enum Looking {
    /// Nobody.
    #[default]
    Nowhere,
    /// Jobs that fit one of these.
    Claim(Vec<Capability>),
    /// Jobs that are given up.
    Tick,
}

/// The rows of one transaction.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    /// As the database has them: leases without the renewals.
    pub(super) jobs: Shelf<JobId, Job>,
    pub(super) versions: BTreeMap<JobId, i64>,
    keys: BTreeMap<(Which, OwnKey), Option<JobId>>,
    /// Every job of the shelf, by its key.
    by_key: BTreeMap<OwnKey, BTreeSet<JobId>>,
    queues: queue::Queues,
    /// How many were asked for, and whether that was all there is.
    lapsed: BTreeMap<Capability, (usize, bool)>,
    backups: BTreeMap<Capability, (usize, bool)>,
    spent_fetched: bool,
    /// Jobs that were found by a lease, which has to be read again after the job was locked.
    candidates: BTreeSet<JobId>,
    next: BTreeMap<Capability, Next>,
    pub(super) book: LeaseBook,
    /// Leases that have a row, as it was fetched.
    pub(super) lease_rows: BTreeMap<Number, Held>,
    /// Tokens of which it is known whether they are held.
    known_tokens: BTreeSet<Number>,
    /// Jobs all of whose leases are in the book.
    whole: BTreeSet<JobId>,
    whole_sessions: BTreeSet<SessionId>,
    pub(super) sessions: Shelf<SessionId, u64>,
    pub(super) pauses: Shelf<(Number, u64), ()>,
    pub(super) claims: Shelf<(SessionId, RequestId), Grants>,
    pub(super) requests: Shelf<(Scope, RequestId), Recorded>,
    newest_blobs: Shelf<Digest, Blob>,
    /// By generation.
    pub(super) blobs: Shelf<Number, Blob>,
    pub(super) keeping: Vec<Keeping>,
    kept: collection::Kept,
    pub(super) cases: Shelf<Number, Case>,
    /// Of jobs that are here, those that are released.
    pub(super) released: Shelf<JobId, ()>,
    pub(super) tokens: Shelf<Number, JobId>,
    pub(super) locks: Shelf<LockName, Lock>,
    /// None: nobody has looked yet.
    overdue_locks: Option<BTreeSet<LockName>>,
    pub(super) lock_grants: Shelf<Number, LockGrant>,
    /// The newest grant of a lock to a request, as the database has it.
    grants_of: BTreeMap<(LockName, RequestId), Option<Number>>,
    /// Grants that ended long ago, the longest ended first.
    spent_grants: Option<Vec<Number>>,
    pub(super) objects: Shelf<ObjectKey, Object>,
    pub(super) outbox: outbox::Outbox,
    pub(super) publications: Shelf<Number, JobId>,
    publications_reach: retention::Reach,
    pub(super) retention: retention::Retention,
    pub(super) entries: Vec<Event>,
    pub(super) clock: Option<Timestamp>,
    /// Drawn after every row was locked.
    numbers: Vec<Number>,
    drawn: usize,
    /// How many commands have found none left.
    short: usize,
    /// The highest fence of what was fetched: no number may be below it.
    fence: Option<Number>,
    looking: Looking,
    wants: RefCell<Wants>,
    missed: Cell<bool>,
}

/// Where a command began.
#[derive(Default)]
struct Mark {
    jobs: usize,
    book: usize,
    sessions: usize,
    pauses: usize,
    claims: usize,
    requests: usize,
    newest_blobs: usize,
    blobs: usize,
    keeping: usize,
    cases: usize,
    released: usize,
    tokens: usize,
    locks: usize,
    lock_grants: usize,
    objects: usize,
    outbox: outbox::Mark,
    publications: usize,
    dropped_chunks: usize,
    entries: usize,
    clock: Option<Timestamp>,
}

impl Overlay {
    /// Runs the commands in their order, from what was fetched. Each is answered by itself. What
    /// was missing is left to be taken with [`Self::take_wants`]; if anything was, the answers
    /// count for nothing.
    pub(super) fn run(
        &mut self,
        commands: &[Command],
        now: Moment,
    ) -> Vec<Result<Answer, Failure>> {
        self.roll_back_to(&Mark::default());
        (self.drawn, self.short) = (0, 0);
        commands.iter().map(|command| self.run_one(command.clone(), now)).collect()
    }

    fn run_one(&mut self, command: Command, now: Moment) -> Result<Answer, Failure> {
        self.looking = match &command {
            Command::Claim(claim) => Looking::Claim(claim.capabilities.clone()),
            Command::Tick => Looking::Tick,
            _ => Looking::Nowhere,
        };
        let mark = self.mark();
        self.missed.set(false);
        let outcome = ops::apply(self, command, now);
        if self.missed.get() {
            self.roll_back_to(&mark);
            return Err(Failure::Unavailable(Fault::NotFetched.to_string()));
        }
        match outcome {
            Ok(answer) => answer.map_err(Failure::Refused),
            Err(fault) => {
                tracing::error!(%fault, "a command failed; its neighbours go on");
                self.roll_back_to(&mark);
                Err(Failure::Unavailable(fault.to_string()))
            }
        }
    }

    /// What was missing since the last call. If anything was, no change is left.
    pub(super) fn take_wants(&mut self) -> Wants {
        if !self.wants.get_mut().is_empty() {
            self.roll_back_to(&Mark::default());
        }
        std::mem::take(self.wants.get_mut())
    }

    /// The numbers that were drawn, in their order.
    pub(super) fn drawn(&self) -> &[Number] {
        &self.numbers[..self.drawn]
    }

    /// Notes that something has to be fetched before the running command counts.
    fn miss<R>(&self, want: impl FnOnce(&mut Wants) -> R) -> Fault {
        self.missed.set(true);
        let _ = want(&mut self.wants.borrow_mut());
        Fault::NotFetched
    }

    fn mark(&self) -> Mark {
        Mark {
            jobs: self.jobs.mark(),
            book: self.book.mark(),
            sessions: self.sessions.mark(),
            pauses: self.pauses.mark(),
            claims: self.claims.mark(),
            requests: self.requests.mark(),
            newest_blobs: self.newest_blobs.mark(),
            blobs: self.blobs.mark(),
            keeping: self.keeping.len(),
            cases: self.cases.mark(),
            released: self.released.mark(),
            tokens: self.tokens.mark(),
            locks: self.locks.mark(),
            lock_grants: self.lock_grants.mark(),
            objects: self.objects.mark(),
            outbox: self.outbox.mark(),
            publications: self.publications.mark(),
            dropped_chunks: self.retention.dropped.len(),
            entries: self.entries.len(),
            clock: self.clock,
        }
    }

    fn roll_back_to(&mut self, mark: &Mark) {
        self.jobs.roll_back_to(mark.jobs);
        self.book.roll_back_to(mark.book);
        self.sessions.roll_back_to(mark.sessions);
        self.pauses.roll_back_to(mark.pauses);
        self.claims.roll_back_to(mark.claims);
        self.requests.roll_back_to(mark.requests);
        self.newest_blobs.roll_back_to(mark.newest_blobs);
        self.blobs.roll_back_to(mark.blobs);
        self.keeping.truncate(mark.keeping);
        self.cases.roll_back_to(mark.cases);
        self.released.roll_back_to(mark.released);
        self.tokens.roll_back_to(mark.tokens);
        self.locks.roll_back_to(mark.locks);
        self.lock_grants.roll_back_to(mark.lock_grants);
        self.objects.roll_back_to(mark.objects);
        self.outbox.roll_back_to(&mark.outbox);
        self.publications.roll_back_to(mark.publications);
        self.retention.dropped.truncate(mark.dropped_chunks);
        self.entries.truncate(mark.entries);
        self.clock = mark.clock;
    }
}
