//! The journal's entries: who was granted what when, what was refused and why.

use serde::{Deserialize, Serialize};

use crate::{
    JobId, Number, SessionId, Timestamp, WorkerName,
    job::{CloseReason, JobState},
};

/// One entry of the append-only journal, written in the transaction that it records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, on the granting side's clock.
    #[serde(rename = "at_ms")]
    pub at: Timestamp,
    /// The job it concerns.
    pub job: JobId,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// A submission was recorded: it made the job, joined it, or was answered from the cache.
    Submitted {
        /// The submission's number.
        submission: Number,
        /// How it came to this job.
        how: Joined,
    },
    /// A submission was withdrawn.
    Withdrawn {
        /// The submission's number.
        submission: Number,
    },
    /// An attempt was granted.
    Granted {
        /// Its token.
        token: Number,
        /// To whom.
        worker: WorkerName,
        /// Under which session.
        session: SessionId,
        /// For how long without renewal, in ms.
        ttl_ms: u64,
        /// Whether it is a backup beside a live attempt.
        backup: bool,
    },
    /// An attempt was renewed for the first time in a life of the store.
    Renewed {
        /// Its token.
        token: Number,
    },
    /// An attempt's deadline was brought forward, because its worker's session ended.
    Suspected {
        /// Its token.
        token: Number,
    },
    /// An attempt was closed.
    Closed {
        /// Its token.
        token: Number,
        /// Its worker.
        worker: WorkerName,
        /// By what.
        reason: CloseReason,
        /// The failure's message, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The job moved to another state.
    Moved {
        /// Where to.
        state: JobState,
        /// The fence after the move.
        fence: Number,
    },
    /// A verb was refused.
    Refused {
        /// The verb (`complete`, `heartbeat`, …).
        verb: String,
        /// The token shown.
        token: Number,
        /// The refusal's stable code.
        code: String,
        /// The refusal in words.
        message: String,
    },
    /// A worker measured that it had been stopped.
    Paused {
        /// The attempt that was held meanwhile.
        token: Number,
        /// For how long, in ms.
        pause_ms: u64,
    },
    /// Somebody asked for another try of a finished job.
    Retried,
}

/// How a submission came to its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joined {
    /// It made the job.
    New,
    /// A live job with the key was there.
    Joined,
    /// A complete job with the key was there, all its blobs present.
    Cached,
    /// It was withdrawn once and is wanted again.
    Revived,
}
