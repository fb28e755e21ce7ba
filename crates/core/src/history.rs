//! The journal's entries: who was granted what when, what was refused and why.

mod of_lock;
mod words;

pub use of_lock::OfLock;

use serde::{Deserialize, Serialize};

use crate::{
    Digest, HolderName, JobId, LockName, Number, ObjectKey, SessionId, Timestamp, WorkerName,
    job::{CloseReason, JobState},
    lock::{LockClose, LockEvent},
    outbox::Fate,
};

/// One entry of the append-only journal, written in the transaction that it records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, on the granting side's clock.
    #[serde(rename = "at_ms")]
    pub at: Timestamp,
    /// What it concerns: one more field, named after its kind (`"job": "j42"`).
    #[serde(flatten)]
    pub subject: Subject,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

impl Event {
    /// An entry about a job.
    pub const fn of_job(at: Timestamp, job: JobId, what: What) -> Self {
        Self { at, subject: Subject::Job(job), what }
    }

    /// The job that it concerns, if it concerns one.
    pub const fn job(&self) -> Option<JobId> {
        match self.subject {
            Subject::Job(job) => Some(job),
            Subject::Lock(_) | Subject::Object(_) => None,
        }
    }
}

/// What an entry concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A job.
    Job(JobId),
    /// A lock.
    Lock(LockName),
    /// A fenced object.
    Object(ObjectKey),
}

impl std::fmt::Display for Subject {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Job(job) => job.fmt(formatter),
            Self::Lock(name) => name.fmt(formatter),
            Self::Object(key) => key.fmt(formatter),
        }
    }
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
    /// An attempt was renewed after its deadline: nobody had replaced it meanwhile.
    RenewedLate {
        /// Its token.
        token: Number,
        /// When it had been granted or renewed before.
        #[serde(rename = "renewed_at_ms")]
        renewed_at: Timestamp,
        /// When its time had been over.
        #[serde(rename = "deadline_ms")]
        deadline: Timestamp,
    },
    /// An attempt's time was over, and that made way for another, or for the job's end. Comes
    /// before the attempt's `Closed`.
    Lapsed {
        /// Its token.
        token: Number,
        /// When it was granted or last renewed.
        #[serde(rename = "renewed_at_ms")]
        renewed_at: Timestamp,
        /// When its time was over.
        #[serde(rename = "deadline_ms")]
        deadline: Timestamp,
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
    /// A lock was granted. Neither its lease id nor its request is told: whoever knew them could
    /// act as its holder.
    LockGranted {
        /// Its token.
        token: Number,
        /// The place in the queue that it had.
        ticket: Number,
        /// To whom.
        holder: HolderName,
        /// For how long without renewal, in ms.
        ttl_ms: u64,
        /// How long it had been waited for, in ms.
        waited_ms: u64,
    },
    /// A grant of a lock ended.
    LockClosed {
        /// Its token.
        token: Number,
        /// Who had held it.
        holder: HolderName,
        /// How.
        how: LockClose,
        /// When it had been granted or last renewed, if its time was over.
        #[serde(rename = "renewed_at_ms", default, skip_serializing_if = "Option::is_none")]
        renewed_at: Option<Timestamp>,
        /// When its time was over, if it was.
        #[serde(rename = "deadline_ms", default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// Somebody began to wait for a lock.
    LockWaiting {
        /// The place in the queue.
        ticket: Number,
        /// Who.
        holder: HolderName,
    },
    /// A waiter left the queue, or was passed over because it had gone.
    LockLeft {
        /// The place in the queue that it had.
        ticket: Number,
        /// Who.
        holder: HolderName,
    },
    /// A fenced object was written.
    ObjectWritten {
        /// The token that wrote.
        token: Number,
        /// Which of that holder's writes.
        op: u64,
        /// The version that it made.
        version: Number,
        /// What it points at; none: it was deleted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<Digest>,
    },
    /// A submission's outputs were published: the name points at the job's manifest.
    Published {
        /// The submission's number: what guards the name.
        submission: Number,
        /// The name.
        key: ObjectKey,
        /// The token that completed the job.
        token: Number,
        /// The version that it made.
        version: Number,
    },
    /// A submission's outputs were not published, and never will be.
    NotPublished {
        /// The submission's number.
        submission: Number,
        /// The name.
        key: ObjectKey,
        /// A stable word: `superseded` by a newer submission, or the name is of the `wrong_kind`.
        reason: String,
        /// The lowest number that the name still accepted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fence: Option<Number>,
    },
    /// A fenced object's fence was raised without a write.
    ObjectRaised {
        /// The fence now.
        fence: Number,
    },
    /// A job's time was over: its inputs and outputs are no longer kept by it.
    Released,
    /// A receiver took a notification about the job.
    NotificationDelivered(Fate),
    /// A notification was given up: it is a dead letter until somebody asks for it again.
    NotificationDead(Fate),
    /// Somebody asked for a notification to be delivered again.
    NotificationAgain(Fate),
}

impl From<LockEvent> for What {
    fn from(event: LockEvent) -> Self {
        match event {
            LockEvent::Granted(held) => Self::LockGranted {
                token: held.token,
                ticket: held.ticket,
                holder: held.holder,
                ttl_ms: held.lease.ttl_ms,
                waited_ms: held.waited_ms,
            },
            LockEvent::Closed { token, holder, how, lease } => {
                let lapsed = how == LockClose::Superseded;
                let (renewed_at, deadline) = (lease.renewed_at, lease.deadline);
                Self::LockClosed {
                    token,
                    holder,
                    how,
                    renewed_at: lapsed.then_some(renewed_at),
                    deadline: lapsed.then_some(deadline),
                }
            }
            LockEvent::Waiting(waiter) => {
                Self::LockWaiting { ticket: waiter.ticket, holder: waiter.holder }
            }
            LockEvent::Left { ticket, holder } => Self::LockLeft { ticket, holder },
        }
    }
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

impl std::fmt::Display for What {
    /// What happened, in a person's words.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Submitted { submission, how } => {
                let how = match how {
                    Joined::New => "made the job",
                    Joined::Joined => "joined the job",
                    Joined::Cached => "was answered from the finished job",
                    Joined::Revived => "is wanted again",
                };
                write!(formatter, "submission {submission} {how}")
            }
            Self::Withdrawn { submission } => {
                write!(formatter, "submission {submission} was withdrawn")
            }
            Self::Granted { token, worker, ttl_ms, backup, .. } => {
                let beside = if *backup { " beside the live one" } else { "" };
                write!(formatter, "granted to {worker} under token {token} for {ttl_ms} ms{beside}")
            }
            Self::Renewed { token } => {
                write!(formatter, "token {token} was renewed, the first time since a start")
            }
            Self::RenewedLate { token, renewed_at, deadline } => {
                let given_ms = deadline.since_ms(*renewed_at);
                write!(
                    formatter,
                    "token {token} was renewed after its {given_ms} ms were over; nobody had \
                     replaced it"
                )
            }
            Self::Lapsed { token, renewed_at, deadline } => {
                let given_ms = deadline.since_ms(*renewed_at);
                write!(
                    formatter,
                    "the time of token {token} was over, {given_ms} ms after it was last renewed"
                )
            }
            Self::Suspected { token } => {
                write!(formatter, "the session of token {token} ended; it may be replaced")
            }
            Self::Closed { token, worker, reason, message } => {
                let message = message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
                write!(formatter, "token {token} of {worker} was closed, {reason}{message}")
            }
            Self::Moved { state, fence } => {
                write!(formatter, "the job is {state}; the fence stands at {fence}")
            }
            Self::Refused { verb, token, code, message } => {
                write!(formatter, "REFUSED {verb} by token {token} ({code}): {message}")
            }
            Self::Paused { token, pause_ms } => {
                write!(formatter, "the worker of token {token} had been paused for {pause_ms} ms")
            }
            Self::Retried => formatter.write_str("somebody asked for another try"),
            Self::LockGranted { .. }
            | Self::LockClosed { .. }
            | Self::LockWaiting { .. }
            | Self::LockLeft { .. } => self.of_lock(formatter),
            Self::ObjectWritten { .. }
            | Self::ObjectRaised { .. }
            | Self::Published { .. }
            | Self::NotPublished { .. } => self.of_object(formatter),
            Self::Released => formatter.write_str("its time was over, nothing of it is kept"),
            Self::NotificationDelivered(fate) => fate.delivered(formatter),
            Self::NotificationDead(fate) => fate.dead(formatter),
            Self::NotificationAgain(fate) => fate.again(formatter),
        }
    }
}
