//! What a rule answers when it will not.

use crate::{
    Digest, HolderName, Invalid, JobId, Number, ObjectKey, Timestamp,
    job::{CloseReason, JobState},
    lock::LockClose,
    object::NumberKind,
};

/// A refusal. Nothing was changed. Each kind is told apart by what its receiver should do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The attempt is closed: stop, discard, report nothing.
    #[error("this token is stale: {reason}; the fence stands at {fence}")]
    StaleToken {
        /// The lowest token still accepted.
        fence: Number,
        /// What closed the attempt.
        reason: CloseReason,
        /// The token that completed the job, if it is complete.
        completed_by: Option<Number>,
    },
    /// The job was completed by another attempt beside this one, or is complete already.
    #[error("the job is already complete, by token {completed_by}")]
    AlreadyComplete {
        /// The token that completed it.
        completed_by: Number,
    },
    /// This pair was never granted for this job: a wrong client, or a stranger.
    #[error("token {token} with this lease id was never granted for {subject}")]
    UnknownToken {
        /// The token shown.
        token: Number,
        /// What it was shown for.
        subject: String,
    },
    /// Blobs that the request names are not present: upload them, then ask again.
    #[error("{field}: {} blob(s) not present, the first is {}", digests.len(), digests[0])]
    MissingBlob {
        /// The field that names the first of them.
        field: String,
        /// Those missing. Invariant: not empty.
        digests: Vec<Digest>,
    },
    /// The lock has gone: released, or to another. Stop.
    #[error("the lease is lost: {reason}; the fence stands at {fence}")]
    LeaseLost {
        /// The lowest token still accepted.
        fence: Number,
        /// How the grant ended.
        reason: LockClose,
    },
    /// Somebody else holds the lock.
    #[error("the lock is held by {holder}, until {} unless renewed", deadline.rfc3339())]
    Held {
        /// Who holds it, as it calls itself.
        holder: HolderName,
        /// When that lease ends unless it is renewed.
        deadline: Timestamp,
    },
    /// A fenced write came too late: its pair is closed, or its token below the fence.
    #[error("this token is stale: {reason}; the fence stands at {fence}")]
    StaleWrite {
        /// The lowest token still accepted.
        fence: Number,
        /// Why, as a word or in words.
        reason: String,
    },
    /// A holder's own write came after a later one of its own.
    #[error("write {op} of this holder came after its write {last}")]
    StaleOp {
        /// The one refused.
        op: u64,
        /// The last one done.
        last: u64,
    },
    /// A holder's second, different write needs a number of its own.
    #[error("another write was done under op {op}; number this one with a higher Fencing-Op")]
    OpRequired {
        /// The number in use.
        op: u64,
    },
    /// The key is guarded by the other kind of number.
    #[error("{key} is guarded by the numbers of {}", kind.as_str())]
    WrongKind {
        /// The key.
        key: ObjectKey,
        /// Its kind.
        kind: NumberKind,
    },
    /// `If-Match` or `If-None-Match` does not hold.
    #[error("the condition does not hold")]
    ConditionFailed {
        /// The version that is there.
        version: Option<Number>,
    },
    /// There is no such thing.
    #[error("{what} {id} does not exist")]
    NotFound {
        /// What was looked for (`job`, `submission`, `blob`, `output`).
        what: &'static str,
        /// Its id as asked for.
        id: String,
    },
    /// The job's state does not allow this.
    #[error("{job} is {state}; {allowed}")]
    WrongState {
        /// The job.
        job: JobId,
        /// Its state.
        state: JobState,
        /// What the verb needs, as a phrase.
        allowed: &'static str,
    },
    /// A newer job has the key; work with that one.
    #[error("{job} is a newer job with the same key")]
    NewerJob {
        /// The newer one.
        job: JobId,
    },
    /// A blob is being uploaded under another generation, or was condemned: start again.
    #[error("blob {digest} of generation {generation} cannot be marked present; upload it again")]
    StaleGeneration {
        /// The blob.
        digest: Digest,
        /// The generation that was offered.
        generation: Number,
    },
    /// A field does not take this value.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

impl Refusal {
    /// The stable code, part of the public contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::StaleToken { .. } | Self::StaleWrite { .. } => "stale_token",
            Self::AlreadyComplete { .. } => "already_complete",
            Self::UnknownToken { .. } => "unknown_token",
            Self::MissingBlob { .. } => "missing_blob",
            Self::LeaseLost { .. } => "lease_lost",
            Self::Held { .. } => "held",
            Self::StaleOp { .. } => "stale_op",
            Self::OpRequired { .. } => "op_required",
            Self::WrongKind { .. } => "wrong_kind",
            Self::ConditionFailed { .. } => "condition_failed",
            Self::NotFound { .. } => "not_found",
            Self::WrongState { .. } => "wrong_state",
            Self::NewerJob { .. } => "newer_job",
            Self::StaleGeneration { .. } => "stale_generation",
            Self::Invalid(_) => "invalid",
        }
    }
}
