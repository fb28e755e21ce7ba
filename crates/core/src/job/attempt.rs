//! An attempt: one grant of one job to one worker, named by its token.

use serde::{Deserialize, Serialize};

use crate::{LeaseId, Number, RequestId, SessionId, Timestamp, WorkerName, lease::Lease};

use super::JobState;

/// One grant of one job to one worker.
///
/// Invariant: closed once, and what closed it stays with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The number of the grant.
    pub token: Number,
    /// The other half of the pair.
    pub lease_id: LeaseId,
    /// The worker as its operator calls it.
    pub worker: WorkerName,
    /// The worker's session.
    pub session: SessionId,
    /// The claim that it answered.
    pub claim: RequestId,
    /// The last heartbeat's `seq` that was sent before that claim.
    pub claim_seq: u64,
    /// When it was granted.
    pub granted_at: Timestamp,
    /// Whether it was granted beside a live one.
    pub backup: bool,
    /// Its lease.
    pub lease: Lease,
    /// What closed it, if something did.
    pub closed: Option<Closed>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// When.
    pub at: Timestamp,
    /// By what.
    pub reason: CloseReason,
    /// For `failed`: what was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// For `failed` and `released`: what became of the job, so that the same verb, asked again
    /// after a lost reply, gets the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeued: Option<Requeued>,
}

/// What closed an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// Its own `complete`.
    Completed,
    /// Its own `fail`.
    Failed,
    /// Its own `release`, or a heartbeat that showed that its worker does not have it.
    Released,
    /// Its deadline passed, and a claim replaced it or a tick gave the job up: a loss.
    Superseded,
    /// Another attempt completed the job.
    Outrun,
    /// The job was cancelled.
    Cancelled,
}

impl CloseReason {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Completed,
        Self::Failed,
        Self::Released,
        Self::Superseded,
        Self::Outrun,
        Self::Cancelled,
    ];

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Released => "released",
            Self::Superseded => "superseded",
            Self::Outrun => "outrun",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Whether another try can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// It may: a full disk, a tool that was killed.
    Retryable,
    /// It cannot: the input is damaged, the recipe does not fit it.
    Final,
}

/// What a worker reported of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A stable word for the cause (`bad_input`, `input_changed`, `disk_full`, `tool_failed`).
    pub reason: String,
    /// What happened, in a person's words, the tool's own message included.
    pub message: String,
    /// Whether another try can help.
    pub kind: FailureKind,
}

/// What became of the job when an attempt was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requeued {
    /// The job's state afterwards.
    pub state: JobState,
    /// For `queued`: not before this.
    #[serde(rename = "run_at_ms", default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
}
