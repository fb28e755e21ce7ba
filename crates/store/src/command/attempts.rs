//! What workers ask: claim, renew, complete, fail, release; and what a server hands back.

use palisade_core::{
    Digest, JobId, LeaseId, Number, RecipeName, RequestId, SessionId, Timestamp, WorkerName,
    job::{Failure as FailureReport, Job},
    lease::Pair,
    manifest::Manifest,
    transition::Beat,
};
use serde::{Deserialize, Serialize};

/// A recipe that a worker can run, in exactly one definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Capability {
    /// The recipe.
    pub recipe: RecipeName,
    /// Its definition's digest.
    pub definition: Digest,
}

/// A worker asks for jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The worker as its operator calls it.
    pub worker: WorkerName,
    /// Its session.
    pub session: SessionId,
    /// Asked again with it, grants still open are renewed and returned, others are returned as
    /// lost, and nothing new is granted.
    pub request_id: RequestId,
    /// The last heartbeat's `seq` that was sent before this claim.
    pub seq: u64,
    /// The leases' length, in ms.
    pub ttl_ms: u64,
    /// What it can run.
    pub capabilities: Vec<Capability>,
    /// One for each job that it would take, random and never used before.
    pub lease_ids: Vec<LeaseId>,
}

/// What a claim came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// Jobs granted, each with its pair.
    pub grants: Vec<Grant>,
    /// Whether the same claim had been granted them before, so that somebody else may have been
    /// told of them.
    pub again: bool,
    /// For a claim asked again: what it had been granted and has lost since.
    pub lost: Vec<(JobId, Pair)>,
    /// When nothing was granted: the instant at which something may become claimable without
    /// anybody's doing (a backoff or a lease ends). None: nothing is in sight.
    pub next_at: Option<Timestamp>,
}

/// A job granted.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// The job, with its new attempt.
    pub job: Job,
    /// The attempt's pair.
    pub pair: Pair,
    /// The lease's length, in ms.
    pub ttl_ms: u64,
}

/// A worker renews all leases of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The session.
    pub session: SessionId,
    /// Rises with each heartbeat of the session.
    pub seq: u64,
    /// Every lease that the session has.
    pub leases: Vec<(JobId, Pair)>,
    /// Its claims that are still unanswered.
    pub pending: Vec<RequestId>,
    /// Pauses that the worker measured since its last heartbeat: the attempt, and ms.
    pub pauses: Vec<(JobId, Pair, u64)>,
}

/// What became of each lease, in the order of the heartbeat. None: a pair never granted.
#[derive(Debug, Clone, PartialEq)]
pub struct Beats {
    /// One answer a lease.
    pub leases: Vec<Option<Beat>>,
    /// Grants of the session that its worker does not know of and that were released.
    pub released: Vec<(JobId, Number)>,
}

/// A worker commits an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Complete {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub pair: Pair,
    /// What was made.
    pub manifest: Manifest,
}

/// A worker reports a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fail {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub pair: Pair,
    /// What went wrong.
    pub failure: FailureReport,
    /// Random: the backoff's jitter.
    pub chance: u64,
}

/// A worker hands an attempt back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub pair: Pair,
}

/// A server hands back a grant that it could not hand over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandBack {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub pair: Pair,
    /// When its lease had been granted, as this server was told.
    pub seen_at: Timestamp,
}
