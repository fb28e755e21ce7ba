//! Submitting: make a job, join a live one, or be answered from a complete one.

use crate::{
    JobId, Number, ObjectKey, Tenant, Timestamp,
    history::{Joined, What},
    job::{Job, JobState, Publication, Submission},
    retry::RetryPolicy,
    spec::Spec,
};

use super::{Applied, Change};

/// A wish for a rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Whose it is.
    pub tenant: Tenant,
    /// What is to be rendered.
    pub spec: Spec,
    /// Budgets, should it make a new job.
    pub retry: RetryPolicy,
    /// After how long a backup attempt may run beside the first, in ms. None: never.
    pub backup_after_ms: Option<u64>,
    /// Higher goes first.
    pub priority: i16,
    /// Not before this.
    pub run_at: Timestamp,
    /// Render again, even if a complete job has the key.
    pub fresh: bool,
    /// The name under which the outputs are to be published, if any.
    pub publish: Option<ObjectKey>,
}

/// Where a wish goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To the tenant's live job with this key.
    Join,
    /// To its complete job with this key.
    Cache,
    /// To a new job.
    New,
}

/// Decides where a wish goes. `complete_is_whole` tells whether the tenant has a complete job
/// with this key of which every blob is present.
pub fn decide(has_live: bool, complete_is_whole: bool, fresh: bool) -> Destination {
    if has_live {
        Destination::Join
    } else if complete_is_whole && !fresh {
        Destination::Cache
    } else {
        Destination::New
    }
}

/// A new job, with its first submission. The job is named after the submission's `number`.
pub fn create(number: Number, wish: Wish, now: Timestamp) -> Applied<()> {
    let key = wish.spec.key();
    let job = Job {
        id: JobId(number),
        tenant: wish.tenant,
        spec: wish.spec,
        key,
        retry: wish.retry,
        backup_after_ms: wish.backup_after_ms,
        priority: wish.priority,
        state: JobState::Queued,
        run_at: wish.run_at,
        fence: Number::ZERO,
        failures: 0,
        losses: 0,
        failed_finally: false,
        attempts: Vec::new(),
        submissions: Vec::new(),
        completion: None,
        dead_letter: None,
        created_at: now,
        moved_at: now,
    };
    let mut change = Change::of(job, now);
    add(&mut change, number, Joined::New, wish.publish);
    change.done(())
}

/// One more submission for a job that is live, or complete and whole.
///
/// # Panics
/// When the job is neither: [`decide`] sends nobody there.
pub fn join(
    job: Job,
    number: Number,
    publish: Option<ObjectKey>,
    now: Timestamp,
) -> Applied<Joined> {
    let how = match job.state {
        JobState::Queued | JobState::Running => Joined::Joined,
        JobState::Complete => Joined::Cached,
        JobState::Failed | JobState::Cancelled => panic!("nobody joins a job that is over"),
    };
    let mut change = Change::of(job, now);
    add(&mut change, number, how, publish);
    change.done(how)
}

fn add(change: &mut Change, number: Number, how: Joined, publish: Option<ObjectKey>) {
    let at = change.now;
    let publication = publish.map(Publication::pending);
    let submission = Submission { number, at, how, withdrawn_at: None, publication };
    change.job.submissions.push(submission);
    change.record(What::Submitted { submission: number, how });
}
