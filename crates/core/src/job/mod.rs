//! A job: one rendering to be done. It owns its submissions, attempts and completion.

mod attempt;
mod publication;
mod state;
mod submission;

pub use attempt::{Attempt, CloseReason, Closed, Failure, FailureKind, Requeued};
pub use publication::{Publication, PublicationOutcome};
pub use state::JobState;
pub use submission::Submission;

use serde::{Deserialize, Serialize};

use crate::{
    JobId, Number, ObjectKey, Tenant, Timestamp, WorkerName,
    manifest::Manifest,
    retry::RetryPolicy,
    spec::{JobKey, Spec},
};

/// The committed record: what was made, and by which token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The token that did it.
    pub token: Number,
    /// The worker that held it.
    pub worker: WorkerName,
    /// When, on the granting side's clock.
    #[serde(rename = "at_ms")]
    pub at: Timestamp,
    /// The outputs.
    pub manifest: Manifest,
}

/// Why a job is `failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// A stable word: `lost_repeatedly`, `failed_repeatedly`, or the failure's own kind.
    pub reason: String,
    /// What the last failure said, in a person's words.
    pub message: String,
}

/// A job's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id, never another job's.
    pub id: JobId,
    /// Whose it is.
    pub tenant: Tenant,
    /// What is to be rendered.
    pub spec: Spec,
    /// The spec's key.
    pub key: JobKey,
    /// Budgets.
    pub retry: RetryPolicy,
    /// After how long a second attempt may run beside the first, in ms. None: never.
    pub backup_after_ms: Option<u64>,
    /// Higher goes first.
    pub priority: i16,
    /// State.
    pub state: JobState,
    /// Not before this; follows the wall clock.
    pub run_at: Timestamp,
    /// The lowest token still accepted. Invariant: never falls.
    pub fence: Number,
    /// Failures reported since the last retry.
    pub failures: u32,
    /// Losses since the last retry.
    pub losses: u32,
    /// Whether a failure reported since the last retry was final.
    pub failed_finally: bool,
    /// All attempts, by rising token.
    pub attempts: Vec<Attempt>,
    /// All submissions, by rising number.
    pub submissions: Vec<Submission>,
    /// Invariant: present exactly when `state` is `complete`.
    pub completion: Option<Completion>,
    /// Invariant: present exactly when `state` is `failed`.
    pub dead_letter: Option<DeadLetter>,
    /// When it was submitted first.
    pub created_at: Timestamp,
    /// When it last moved.
    pub moved_at: Timestamp,
}

impl Job {
    /// The attempts that nothing has closed.
    pub fn open_attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| attempt.closed.is_none())
    }

    /// Whether some attempt is open.
    pub fn has_open_attempt(&self) -> bool {
        self.open_attempts().next().is_some()
    }

    /// The attempt that a token names.
    pub fn attempt(&self, token: Number) -> Option<&Attempt> {
        // Sorted by token: a job that was released a thousand times stays cheap.
        let found = self.attempts.binary_search_by_key(&token, |attempt| attempt.token);
        found.ok().map(|index| &self.attempts[index])
    }

    /// The submission that a number names.
    pub fn submission(&self, number: Number) -> Option<&Submission> {
        self.submissions.iter().find(|submission| submission.number == number)
    }

    /// Whether somebody still wants it.
    pub fn is_wanted(&self) -> bool {
        self.submissions.iter().any(|submission| submission.withdrawn_at.is_none())
    }

    /// Whether a claim would be granted now: queued and due, or running while no open attempt is
    /// within its deadline.
    pub fn is_claimable(&self, now: Timestamp) -> bool {
        match self.state {
            JobState::Queued => self.run_at <= now,
            JobState::Running => self.open_attempts().all(|attempt| !attempt.lease.is_within(now)),
            JobState::Complete | JobState::Failed | JobState::Cancelled => false,
        }
    }

    /// Whether the failures reported since the last retry decide: one was final, or those allowed
    /// are used up. The first failure is the least that can decide, whatever is allowed.
    pub fn has_failed_for_good(&self) -> bool {
        let used_up = self.failures > 0 && self.failures >= self.retry.failures_allowed;
        self.failed_finally || used_up
    }

    /// Whether the job is `failed` should what is open now be lost: nothing but one of the open
    /// attempts can still save it.
    pub fn is_on_last_chance(&self) -> bool {
        self.losses >= self.retry.losses_allowed || self.has_failed_for_good()
    }

    /// From when on a second attempt may run beside the only open one. None: not at all, as things
    /// stand.
    ///
    /// Counted from the newest grant, so that a backup that fails at once is not followed by the
    /// next one at once; and never after failures that decide, which another try cannot undo.
    pub fn backup_at(&self) -> Option<Timestamp> {
        let after_ms = self.backup_after_ms?;
        let alone = self.state == JobState::Running && self.open_attempts().count() == 1;
        let newest = self.attempts.last().filter(|_| alone && !self.has_failed_for_good())?;
        Some(newest.granted_at.plus_ms(after_ms))
    }

    /// The publication of a submission, if it is to be carried out now: the token that completed
    /// the job, and the name.
    pub fn publication_due(&self, number: Number) -> Option<(Number, &ObjectKey)> {
        let token = self.completed_by()?;
        let submission = self.submission(number)?;
        let publication = submission.publication.as_ref()?;
        let due = submission.withdrawn_at.is_none() && publication.outcome.is_none();
        due.then_some((token, &publication.key))
    }

    /// The submissions whose publication is to be carried out now, by rising number.
    pub fn publications_due(&self) -> impl Iterator<Item = Number> {
        let asked = self.submissions.iter().filter(|one| one.publication.is_some());
        asked.map(|one| one.number).filter(|number| self.publication_due(*number).is_some())
    }

    /// The token that completed it.
    pub fn completed_by(&self) -> Option<Number> {
        self.completion.as_ref().map(|completion| completion.token)
    }
}
