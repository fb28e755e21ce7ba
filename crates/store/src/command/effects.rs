//! Locks and fenced objects: what their holders ask; publications: what anybody may carry out.

use palisade_core::{
    Digest, JobId, LeaseId, LockName, Number, ObjectKey, RequestId, lease::Pair, lock::Acquire,
    object::Condition,
};

/// Somebody asks for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcquireLock {
    /// The lock.
    pub name: LockName,
    /// The wish.
    pub wish: Acquire,
}

/// A holder renews a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewLock {
    /// The lock.
    pub name: LockName,
    /// The grant.
    pub pair: Pair,
}

/// A holder releases a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseLock {
    /// The lock.
    pub name: LockName,
    /// The grant.
    pub pair: Pair,
}

/// A call that asked for a lock has gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveLock {
    /// The lock.
    pub name: LockName,
    /// The wish.
    pub request_id: RequestId,
    /// The lease id that this call of it brought.
    pub call: LeaseId,
}

/// A holder points a fenced object at bytes that are present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutObject {
    /// The object.
    pub key: ObjectKey,
    /// Who writes.
    pub pair: Pair,
    /// Which of this holder's writes to this key it is, rising.
    pub op: u64,
    /// The bytes.
    pub digest: Digest,
    /// The generation that they were brought as; another that is present serves as well.
    pub generation: Number,
    /// Their media type.
    pub media_type: String,
    /// A further condition.
    pub condition: Condition,
}

/// A holder deletes a fenced object. Its fence stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteObject {
    /// The object.
    pub key: ObjectKey,
    /// Who writes.
    pub pair: Pair,
    /// Which of this holder's writes to this key it is, rising.
    pub op: u64,
    /// A further condition.
    pub condition: Condition,
}

/// A holder raises a fence without writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaiseObject {
    /// The object.
    pub key: ObjectKey,
    /// Who raises.
    pub pair: Pair,
}

/// Somebody carries out publications that are due, the oldest submissions' first. Anybody may,
/// whenever: one that was carried out is not due any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish {
    /// At most so many.
    pub limit: usize,
}

/// What was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projected {
    /// The submissions, each with its job, whatever came of their publications.
    pub carried_out: Vec<(JobId, Number)>,
    /// Whether more are due.
    pub more: bool,
}
