//! What is shown of jobs, workers and the journal.

use std::collections::BTreeMap;

use palisade_core::{Timestamp, history::Event, job::Job, manifest::Manifest};
use serde::{Deserialize, Serialize};

/// `GET /v1/jobs/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// `queued`, `running`, `complete`, `failed` or `cancelled`.
    pub state: String,
    /// Whether a claim would be granted now: queued and due, or running with no living holder.
    pub claimable: bool,
    /// The recipe.
    pub recipe: String,
    /// Its definition's digest.
    pub definition: String,
    /// The job key.
    pub key: String,
    /// Inputs by name.
    pub inputs: BTreeMap<String, InputView>,
    /// Parameters, complete, in canonical text.
    pub parameters: BTreeMap<String, String>,
    /// Higher goes first.
    pub priority: i16,
    /// Not before this.
    pub run_at_ms: u64,
    /// The lowest token still accepted.
    pub fence: u64,
    /// Failures since the last retry.
    pub failures: u32,
    /// Losses since the last retry.
    pub losses: u32,
    /// Who wants it.
    pub submissions: Vec<SubmissionView>,
    /// Who tried it.
    pub attempts: Vec<AttemptView>,
    /// What was made, once complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionView>,
    /// Why it failed, once failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadLetterView>,
    /// When it was submitted first.
    pub created_at_ms: u64,
    /// When it last moved.
    pub moved_at_ms: u64,
    /// The store's clock when this was read.
    pub now_ms: u64,
}

/// An input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputView {
    /// Its bytes.
    pub digest: String,
    /// Their length.
    pub size_bytes: u64,
    /// What the customer calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmissionView {
    /// Its number.
    pub number: u64,
    /// When it was recorded.
    pub at_ms: u64,
    /// `new`, `joined`, `cached` or `revived`.
    pub how: String,
    /// When it was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_at_ms: Option<u64>,
    /// Where its outputs are to be published, and how that stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<PublicationView>,
}

/// A submission's publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicationView {
    /// The name: a fenced object's key.
    pub key: String,
    /// `pending`, `published`, `superseded` by a newer submission, `withdrawn` with its submission
    /// before it was carried out, or `wrong_kind`: the name is guarded by grants.
    pub state: String,
    /// The object's version that it made, if it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The lowest number that the name still accepted, if it was superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// When it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptView {
    /// Its fencing token.
    pub token: u64,
    /// Its worker.
    pub worker: String,
    /// The worker's session.
    pub session: String,
    /// `open`, or what closed it: `completed`, `failed`, `released`, `superseded`, `outrun`,
    /// `cancelled`.
    pub outcome: String,
    /// Whether it was granted beside a live one.
    pub backup: bool,
    /// When it was granted.
    pub granted_at_ms: u64,
    /// When it was last renewed.
    pub renewed_at_ms: u64,
    /// When its lease ends unless renewed.
    pub deadline_ms: u64,
    /// The lease's length.
    pub ttl_ms: u64,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at_ms: Option<u64>,
    /// The failure it reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How far it is, while it is open, as its worker told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressView>,
}

/// How far a render is. Hearsay: nothing is decided by it, and it is kept nowhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgressView {
    /// The share done, 0 to 1; absent where the length is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How many seconds of output a second of work brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// How long it will take still, in ms; absent where the length is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
}

/// The committed record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompletionView {
    /// The token that did it.
    pub token: u64,
    /// The worker that held it.
    pub worker: String,
    /// When.
    pub at_ms: u64,
    /// What was made, verified how, and by what.
    pub manifest: Manifest,
}

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterView {
    /// A stable word.
    pub reason: String,
    /// In a person's words.
    pub message: String,
}

/// `GET /v1/jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobList {
    /// Newest first.
    pub jobs: Vec<JobView>,
    /// Where the next page begins; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One entry of the journal, at its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventView {
    /// Its position in the journal.
    pub position: u64,
    /// The entry.
    #[serde(flatten)]
    pub event: Event,
}

/// `GET /v1/jobs/{id}/history` and `GET /v1/locks/{name}/history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryView {
    /// Oldest first.
    pub events: Vec<EventView>,
}

/// `GET /v1/workers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerList {
    /// One a session.
    pub workers: Vec<WorkerView>,
}

/// A worker's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerView {
    /// The worker as its operator calls it.
    pub worker: String,
    /// The session.
    pub session: String,
    /// Whether its stream is open at this server.
    pub connected: bool,
    /// What it holds.
    pub leases: Vec<LeaseHeldView>,
}

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseHeldView {
    /// The job's id.
    pub job: String,
    /// The fencing token.
    pub token: u64,
    /// When it was granted.
    pub granted_at_ms: u64,
    /// When it ends unless renewed.
    pub deadline_ms: u64,
    /// Its length.
    pub ttl_ms: u64,
}

/// What is known of a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobView {
    /// Its name.
    pub digest: String,
    /// Its length.
    pub size_bytes: u64,
}

impl JobView {
    /// What is shown of a job at an instant.
    pub fn of(job: &Job, now: Timestamp) -> Self {
        let inputs = job.spec.inputs.iter().map(|(name, input)| {
            let digest = input.digest.to_string();
            let view = InputView { digest, size_bytes: input.size_bytes, name: input.name.clone() };
            (name.to_string(), view)
        });
        let parameters = job.spec.parameters.iter();
        Self {
            id: job.id.to_string(),
            tenant: job.tenant.to_string(),
            state: job.state.to_string(),
            claimable: job.is_claimable(now),
            recipe: job.spec.recipe.to_string(),
            definition: job.spec.definition.to_string(),
            key: job.key.to_string(),
            inputs: inputs.collect(),
            parameters: parameters.map(|(k, v)| (k.to_string(), v.clone())).collect(),
            priority: job.priority,
            run_at_ms: job.run_at.0,
            fence: job.fence.get(),
            failures: job.failures,
            losses: job.losses,
            submissions: job.submissions.iter().map(SubmissionView::of).collect(),
            attempts: job.attempts.iter().map(AttemptView::of).collect(),
            completion: job.completion.as_ref().map(|completion| CompletionView {
                token: completion.token.get(),
                worker: completion.worker.to_string(),
                at_ms: completion.at.0,
                manifest: completion.manifest.clone(),
            }),
            dead_letter: job.dead_letter.as_ref().map(|letter| DeadLetterView {
                reason: letter.reason.clone(),
                message: letter.message.clone(),
            }),
            created_at_ms: job.created_at.0,
            moved_at_ms: job.moved_at.0,
            now_ms: now.0,
        }
    }
}

impl SubmissionView {
    fn of(submission: &palisade_core::job::Submission) -> Self {
        use palisade_core::history::Joined;
        let how = match submission.how {
            Joined::New => "new",
            Joined::Joined => "joined",
            Joined::Cached => "cached",
            Joined::Revived => "revived",
        };
        Self {
            number: submission.number.get(),
            at_ms: submission.at.0,
            how: how.to_owned(),
            withdrawn_at_ms: submission.withdrawn_at.map(|at| at.0),
            publication: PublicationView::of(submission),
        }
    }
}

impl PublicationView {
    fn of(submission: &palisade_core::job::Submission) -> Option<Self> {
        use palisade_core::job::PublicationOutcome;
        let publication = submission.publication.as_ref()?;
        let (version, fence, at) = match publication.outcome {
            None => (None, None, None),
            Some(PublicationOutcome::Published { version, at }) => (Some(version), None, Some(at)),
            Some(PublicationOutcome::Superseded { fence, at }) => (None, Some(fence), Some(at)),
            Some(PublicationOutcome::WrongKind { at }) => (None, None, Some(at)),
        };
        Some(Self {
            key: publication.key.to_string(),
            state: submission.publication_state()?.to_owned(),
            version: version.map(palisade_core::Number::get),
            fence: fence.map(palisade_core::Number::get),
            at_ms: at.map(|at| at.0),
        })
    }
}

impl AttemptView {
    fn of(attempt: &palisade_core::job::Attempt) -> Self {
        let closed = attempt.closed.as_ref();
        Self {
            token: attempt.token.get(),
            worker: attempt.worker.to_string(),
            session: attempt.session.to_string(),
            outcome: closed.map_or("open", |closed| closed.reason.as_str()).to_owned(),
            backup: attempt.backup,
            granted_at_ms: attempt.granted_at.0,
            renewed_at_ms: attempt.lease.renewed_at.0,
            deadline_ms: attempt.lease.deadline.0,
            ttl_ms: attempt.lease.ttl_ms,
            closed_at_ms: closed.map(|closed| closed.at.0),
            message: closed
                .and_then(|closed| closed.failure.as_ref())
                .map(|failure| failure.message.clone()),
            progress: None,
        }
    }
}
