//! What is told: which submissions a move of a job concerns, and what is said of it.

use serde::{Deserialize, Serialize};

use crate::{
    Invalid, JobId, Number, Timestamp,
    job::{Job, JobState},
};

use super::{EndpointId, body, body::Progress};

/// What happened to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum EventType {
    /// It is complete; or it was already, when it was asked for again.
    Completed,
    /// It failed for good.
    Failed,
    /// Its last submission was withdrawn.
    Cancelled,
    /// It came further. Told as well as can be, and never a second time.
    Progress,
}

impl EventType {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Completed, Self::Failed, Self::Cancelled, Self::Progress];

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "job.completed",
            Self::Failed => "job.failed",
            Self::Cancelled => "job.cancelled",
            Self::Progress => "job.progress",
        }
    }

    /// All words, for a refusal.
    pub fn words() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl std::str::FromStr for EventType {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|event| event.as_str() == text);
        let allowed = || format!("must be one of {}", Self::words());
        found.ok_or_else(|| Invalid::new("events", text, allowed()))
    }
}

impl TryFrom<String> for EventType {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<EventType> for String {
    fn from(event: EventType) -> Self {
        event.as_str().to_owned()
    }
}

impl std::fmt::Display for EventType {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The stable id of one notification to one endpoint: `evt_`, the endpoint's digits, `_`, the
/// row's number. The same however often it is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId {
    /// To whom.
    pub endpoint: EndpointId,
    /// The row.
    pub number: Number,
}

impl std::fmt::Display for EventId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "evt_{:016x}_{}", self.endpoint.0, self.number)
    }
}

impl std::str::FromStr for EventId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let parts = text.strip_prefix("evt_").and_then(|rest| rest.split_once('_'));
        parts
            .and_then(|(endpoint, number)| {
                let endpoint = EndpointId::from_digits(endpoint)?;
                Some(Self { endpoint, number: number.parse().ok()? })
            })
            .ok_or_else(|| {
                let allowed = "must be a notification's id, as in its webhook-id header";
                Invalid::new("delivery", text, allowed)
            })
    }
}

/// One thing said about one submission. Never changed once it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What happened.
    pub event: EventType,
    /// The job.
    pub job: JobId,
    /// Whose wish it was.
    pub submission: Number,
    /// The token that did it. None: no attempt did.
    pub token: Option<Number>,
    /// Rises with each thing said about the job: what has a lower one is older.
    pub seq: Number,
    /// When it happened.
    pub at: Timestamp,
    /// What is sent, byte for byte.
    pub body: String,
}

/// A submission that a move of its job concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The submission.
    pub submission: Number,
    /// What happened.
    pub event: EventType,
    /// The token that did it.
    pub token: Option<Number>,
}

/// Whom a change of a job's record has to be told: nobody, unless it was a move to an end, or a
/// wish that a finished job answered.
///
/// A submission that was withdrawn before has had its answer then.
pub fn told(before: Option<&Job>, after: &Job) -> Vec<Told> {
    let moved = before.is_none_or(|before| before.state != after.state);
    let known = before.map_or(0, |before| before.submissions.len());
    let (event, token) = match after.state {
        JobState::Complete => (EventType::Completed, after.completed_by()),
        JobState::Failed if moved => (EventType::Failed, closed_last(before, after)),
        JobState::Cancelled if moved => (EventType::Cancelled, None),
        JobState::Queued | JobState::Running | JobState::Failed | JobState::Cancelled => {
            return Vec::new();
        }
    };
    let was_withdrawn = |number: Number| {
        let before = before.and_then(|before| before.submission(number));
        before.is_some_and(|submission| submission.withdrawn_at.is_some())
    };
    let concerned =
        after.submissions.iter().enumerate().filter(|(index, submission)| match event {
            // The last withdrawal takes those along that this very change withdrew.
            EventType::Cancelled => !was_withdrawn(submission.number),
            _ => submission.withdrawn_at.is_none() && (moved || *index >= known),
        });
    concerned.map(|(_, submission)| Told { submission: submission.number, event, token }).collect()
}

/// The newest of the attempts that this change closed.
fn closed_last(before: Option<&Job>, after: &Job) -> Option<Number> {
    let was_open = |token| {
        let before = before.and_then(|before| before.attempt(token));
        before.is_none_or(|attempt| attempt.closed.is_none())
    };
    let closed = after.attempts.iter().filter(|attempt| attempt.closed.is_some());
    closed.map(|attempt| attempt.token).filter(|token| was_open(*token)).max()
}

/// What is said to a submission about the job as it is now.
pub fn notice(job: &Job, told: Told, seq: Number, at: Timestamp) -> Notice {
    let Told { submission, event, token } = told;
    let body = body::of_move(job, told, seq, at);
    Notice { event, job: job.id, submission, token, seq, at, body }
}

/// What is said of a render that came further: to every submission that still wants it. Nothing
/// if that attempt is not open.
pub fn progress(
    job: &Job,
    token: Number,
    came: Progress,
    (seq, at): (Number, Timestamp),
) -> Vec<Notice> {
    if !job.open_attempts().any(|attempt| attempt.token == token) {
        return Vec::new();
    }
    let wanted = job.submissions.iter().filter(|submission| submission.withdrawn_at.is_none());
    wanted
        .map(|submission| {
            let told = Told {
                submission: submission.number,
                event: EventType::Progress,
                token: Some(token),
            };
            let body = body::of_progress(job, told, came, (seq, at));
            let (job, submission) = (job.id, submission.number);
            let event = EventType::Progress;
            Notice { event, job, submission, token: Some(token), seq, at, body }
        })
        .collect()
}
