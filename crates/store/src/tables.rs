//! The records that the operations work on, whatever engine keeps them.

use std::collections::BTreeSet;

use palisade_core::{
    Digest, JobId, LockName, Number, ObjectKey, RequestId, SessionId, Tenant, Timestamp,
    blob::{Blob, collect::Case},
    history::Event,
    job::Job,
    lease::Lease,
    lock::{Lock, LockGrant},
    object::Object,
    outbox::{Delivery, Endpoint, EndpointId},
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

/// Records that an operation is going to read one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Jobs.
    pub jobs: Vec<JobId>,
    /// Fenced objects.
    pub objects: Vec<ObjectKey>,
    /// The newest generations of these digests.
    pub blobs: Vec<Digest>,
}

/// The records inside one transaction. Every read sees the writes before it.
///
/// The contract for implementors:
/// - All calls between a begin and its commit are one transaction; after a commit has answered,
///   its writes survive a crash.
/// - Jobs answered here carry, for each open attempt, the lease as last renewed, including
///   renewals that live in memory alone.
/// - `draw` never answers a number twice, whatever happens to the transaction.
pub trait Tables:
    LockTables + ObjectTables + CollectorTables + OutboxTables + PublicationTables + RetentionTables
{
    /// Draws the next number.
    fn draw(&mut self) -> Result<Number, Fault>;

    /// Whether records are far, so that looking for what to read ahead is worth reading some twice.
    fn is_far(&self) -> bool {
        false
    }
    /// Told what will be read, a store that is far away asks for all of it together.
    fn read_ahead(&mut self, _ahead: Ahead) -> Result<(), Fault> {
        Ok(())
    }

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
    /// The newest grant of this lock that this request was given.
    fn lock_grant_of(
        &mut self,
        name: &LockName,
        request: &RequestId,
    ) -> Result<Option<LockGrant>, Fault>;
    /// Forgets grants that ended before an instant, at most so many: the longest ended first, of
    /// those that ended together the lowest token.
    fn forget_lock_grants(&mut self, ended_before: Timestamp, limit: usize) -> Result<(), Fault>;
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

/// What the collector needs inside one transaction.
pub trait CollectorTables {
    /// One generation of a digest, whether it is the newest or not.
    fn generation(&mut self, digest: Digest, generation: Number) -> Result<Option<Blob>, Fault>;
    /// Whether anything keeps a generation.
    fn is_kept(&mut self, digest: Digest, generation: Number) -> Result<bool, Fault>;
    /// Drops one keeper of all generations of a digest.
    fn unkeep_blob(&mut self, digest: Digest, keeper: &Keeper) -> Result<(), Fault>;
    /// Drops the pins whose instant is `now` or before.
    fn drop_passed_pins(&mut self, now: Timestamp) -> Result<(), Fault>;
    /// A generation's case.
    fn case(&mut self, digest: Digest, generation: Number) -> Result<Option<Case>, Fault>;
    /// Writes a case, new or moved on.
    fn put_case(&mut self, case: &Case) -> Result<(), Fault>;
    /// Closes a case.
    fn drop_case(&mut self, digest: Digest, generation: Number) -> Result<(), Fault>;
    /// Forgets a condemned generation, and its case.
    fn forget_blob(&mut self, digest: Digest, generation: Number) -> Result<(), Fault>;
    /// Whether a job was released: it no longer keeps its inputs and outputs.
    fn is_released(&mut self, job: JobId) -> Result<bool, Fault>;
    /// Says that a job is released, or that it is not.
    fn set_released(&mut self, job: JobId, released: bool) -> Result<(), Fault>;
}

/// The outbox inside one transaction.
pub trait OutboxTables {
    /// All endpoints, by id. Asked for at every move of a job to its end: from memory.
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Fault>;
    /// Writes an endpoint, new or changed.
    fn put_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), Fault>;
    /// Drops an endpoint and all its rows.
    fn drop_endpoint(&mut self, id: EndpointId) -> Result<(), Fault>;
    /// One row.
    fn delivery(&mut self, number: Number) -> Result<Option<Delivery>, Fault>;
    /// Writes a row, new or changed.
    fn put_delivery(&mut self, delivery: &Delivery) -> Result<(), Fault>;
    /// An endpoint's rows that are due ([`Delivery::is_due`]), the longest due first, then by
    /// number. A row before which another of its job is open at this endpoint is not among them.
    fn due_deliveries(
        &mut self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Delivery>, Fault>;
    /// How many of an endpoint's rows are leased, within their deadline.
    fn busy_deliveries(&mut self, endpoint: EndpointId, now: Timestamp) -> Result<usize, Fault>;
    /// The earliest instant after `now` at which an open row becomes due.
    fn next_delivery(&mut self, now: Timestamp) -> Result<Option<Timestamp>, Fault>;
}

/// Entries of the journal that an engine keeps together, and forgets together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The position of its first entry.
    pub first: u64,
    /// How many entries it has; their positions follow each other.
    pub count: u64,
    /// When its newest entry was written.
    pub newest: Timestamp,
    /// The jobs that it tells of.
    pub jobs: BTreeSet<JobId>,
}

/// A claim that was answered long ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldClaim {
    /// Whose.
    pub session: SessionId,
    /// Its id.
    pub claim: RequestId,
    /// What it was granted.
    pub grants: Vec<(JobId, Number)>,
}

/// What may be forgotten, inside one transaction. Positions of the journal go on where they were,
/// also when all of it is gone.
pub trait RetentionTables {
    /// Whether a job is queued or running. One that is not there is not.
    fn is_live(&mut self, job: JobId) -> Result<bool, Fault>;
    /// The journal's chunks that begin after a position, oldest first.
    fn chunks_after(&mut self, position: u64, limit: usize) -> Result<Vec<Chunk>, Fault>;
    /// Forgets a chunk, and remembers up to where entries may be missing.
    fn drop_chunk(&mut self, chunk: &Chunk) -> Result<(), Fault>;
    /// Forgets first answers given before an instant. Answers how many.
    fn forget_requests(&mut self, before: Timestamp, limit: usize) -> Result<usize, Fault>;
    /// Claims answered before an instant, oldest first.
    fn old_claims(&mut self, before: Timestamp, limit: usize) -> Result<Vec<OldClaim>, Fault>;
    /// Forgets what a claim was granted.
    fn drop_claim(&mut self, session: &SessionId, claim: &RequestId) -> Result<(), Fault>;
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
