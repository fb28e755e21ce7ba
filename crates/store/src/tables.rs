//! The records that the operations work on, whatever engine keeps them.

use palisade_core::{
    Digest, JobId, LockName, Number, ObjectKey, RequestId, SessionId, Tenant, Timestamp,
    blob::Blob,
    history::Event,
    job::Job,
    lease::Lease,
    lock::{Lock, LockGrant},
    object::Object,
    spec::JobKey,
};

use crate::{command::Capability, fault::Fault, lease_book::Held};

/// Which record of requests a request id belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Submissions of one tenant.
    Tenant(Tenant),
    /// Cancels and retries of one job.
    Job(JobId),
}

/// The first answer to a request, kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// What was asked: another request under the same id is refused.
    pub fingerprint: Digest,
    /// The answer, as JSON.
    pub answer: String,
}

/// What keeps a blob: a reference, for as long as it stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keeper {
    /// An output of this job's completion.
    Output(JobId),
    /// An input of this job.
    Input(JobId),
    /// A pin of this attempt, until it is closed.
    Attempt(Number),
    /// A pin until an instant.
    Until(Timestamp),
    /// The fenced object whose content is of this version.
    Object(Number),
}

/// The records inside one transaction. Every read sees the writes before it.
///
/// The contract for implementors:
/// - All calls between a begin and its commit are one transaction; after a commit has answered,
///   its writes survive a crash.
/// - Jobs answered here carry, for each open attempt, the lease as last renewed, including
///   renewals that live in memory alone.
/// - `draw` never answers a number twice, whatever happens to the transaction.
pub trait Tables: LockTables + ObjectTables + PublicationTables {
    /// Draws the next number.
    fn draw(&mut self) -> Result<Number, Fault>;

    /// A job's record.
    fn job(&mut self, id: JobId) -> Result<Option<Job>, Fault>;
    /// Writes a job's record, new or changed. `before` is the record as it was read, if it was
    /// there: what is equal in both need not be written.
    fn put_job(&mut self, before: Option<&Job>, job: &Job) -> Result<(), Fault>;
    /// The tenant's live job with this key. At most one.
    fn live_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault>;
    /// The tenant's newest complete job with this key.
    fn complete_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault>;
    /// The tenant's newest job with this key, in whatever state.
    fn newest_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault>;

    /// Queued jobs that are due and that one of the capabilities fits: by priority, then by
    /// `run_at`, then by id.
    fn due(
        &mut self,
        fits: &[Capability],
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<JobId>, Fault>;
    /// The earliest `run_at` after `now` of a queued job that fits.
    fn next_due(&mut self, fits: &[Capability], now: Timestamp)
    -> Result<Option<Timestamp>, Fault>;
    /// Attempts that a claim of this session had been granted, open or not.
    fn granted(
        &mut self,
        session: &SessionId,
        claim: &RequestId,
    ) -> Result<Vec<(JobId, Number)>, Fault>;

    /// All leases that are held, with their renewals.
    fn held(&mut self) -> &mut dyn HeldLeases;

    /// The first answer to a request.
    fn recorded(&mut self, scope: &Scope, id: &RequestId) -> Result<Option<Recorded>, Fault>;
    /// Keeps the first answer to a request.
    fn record(&mut self, scope: &Scope, id: &RequestId, answer: &Recorded) -> Result<(), Fault>;

    /// A digest's newest generation.
    fn blob(&mut self, digest: Digest) -> Result<Option<Blob>, Fault>;
    /// Writes a generation's row, new or changed.
    fn put_blob(&mut self, blob: &Blob) -> Result<(), Fault>;
    /// Keeps a generation. Repeated, it stands once.
    fn keep_blob(
        &mut self,
        digest: Digest,
        generation: Number,
        keeper: &Keeper,
    ) -> Result<(), Fault>;
    /// Drops everything that this keeper keeps.
    fn drop_keeper(&mut self, keeper: &Keeper) -> Result<(), Fault>;

    /// Appends to the journal.
    fn append(&mut self, events: &[Event]) -> Result<(), Fault>;

    /// Records the clock.
    fn record_clock(&mut self, now: Timestamp) -> Result<(), Fault>;
}

/// The locks inside one transaction.
pub trait LockTables {
    /// A lock's record: its lease as last renewed, and who waits. Waiters live in memory alone.
    fn lock(&mut self, name: &LockName) -> Result<Option<Lock>, Fault>;
    /// Writes a lock's record. `before` is the record as it was read, if it was there: what a
    /// restart may forget (waiters, renewals other than the first of a life) costs no write.
    fn put_lock(&mut self, before: Option<&Lock>, lock: &Lock) -> Result<(), Fault>;
    /// The grant of a lock that has this token.
    fn lock_grant(&mut self, token: Number) -> Result<Option<LockGrant>, Fault>;
    /// Writes a grant, new or ended.
    fn put_lock_grant(&mut self, grant: &LockGrant) -> Result<(), Fault>;
    /// Locks that somebody waits for.
    fn waited_for(&mut self) -> Vec<LockName>;
    /// Whether any lock is held.
    fn any_lock_held(&mut self) -> bool;
}

/// The fenced objects inside one transaction.
pub trait ObjectTables {
    /// An object's record, a deleted one's too.
    fn object(&mut self, key: &ObjectKey) -> Result<Option<Object>, Fault>;
    /// Writes an object's record, new or changed.
    fn put_object(&mut self, object: &Object) -> Result<(), Fault>;
    /// The job of which an attempt has this token, closed ones included.
    fn job_of_token(&mut self, token: Number) -> Result<Option<JobId>, Fault>;
}

/// The list of publications that are due, inside one transaction.
pub trait PublicationTables {
    /// Those due, by rising number of their submission, each with its job.
    fn publications_due(&mut self, limit: usize) -> Result<Vec<(Number, JobId)>, Fault>;
    /// Notes one that is due. Repeated, it stands once.
    fn put_publication_due(&mut self, submission: Number, job: JobId) -> Result<(), Fault>;
    /// Takes one off the list.
    fn drop_publication_due(&mut self, submission: Number) -> Result<(), Fault>;
}

/// The leases that are held. Reads see the changes of this transaction; a rollback undoes them.
pub trait HeldLeases {
    /// The lease that a token names, if its attempt is open.
    fn get(&self, token: Number) -> Option<&Held>;
    /// Changes a held lease's time, in memory alone.
    fn set_lease(&mut self, token: Number, lease: Lease);
    /// The tokens that a session holds, rising.
    fn of_session(&self, session: &SessionId) -> Vec<Number>;
    /// Jobs of which no open attempt is within its deadline, the longest lapsed first.
    fn lapsed(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool, limit: usize) -> Vec<JobId>;
    /// Jobs that a backup attempt may join now.
    fn backup_due(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool, limit: usize) -> Vec<JobId>;
    /// The earliest instant after `now` at which a fitting job lapses or may get a backup.
    fn next_change(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool) -> Option<Timestamp>;
    /// Whether anything is held at all.
    fn is_empty(&self) -> bool;
    /// The highest heartbeat seen of a session.
    fn beat_seen(&self, session: &SessionId) -> u64;
    /// Remembers a session's heartbeat. Kept in memory alone: forgotten, it costs a lease its
    /// release, which costs its time.
    fn see_beat(&mut self, session: &SessionId, seq: u64);
    /// Remembers a pause that a worker reported, which it does until it is answered. Answers
    /// whether it is new. Kept in memory alone: forgotten, it is told twice.
    fn see_pause(&mut self, token: Number, pause_ms: u64) -> bool;
}
