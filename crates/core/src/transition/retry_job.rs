//! Retrying: a job that is over gets another try.

use crate::{
    JobId, Number, Timestamp,
    history::What,
    job::{Job, JobState},
    refusal::Refusal,
};

use super::{Applied, Change};

/// What a retry asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// For a cancelled job: the submission to revive, that one alone.
    pub submission: Option<Number>,
    /// The newest job of the tenant with the same key, read in the transaction.
    pub newest_with_key: JobId,
}

/// Queues a failed or cancelled job again, its budgets reset. Refused when a newer job has the
/// key: two live jobs would render the same thing.
pub fn retry(job: Job, asked: Retry, now: Timestamp) -> Result<Applied<()>, Refusal> {
    let revived = match (job.state, asked.submission) {
        (JobState::Failed, None) => None,
        (JobState::Failed | JobState::Cancelled, Some(number)) => Some(number),
        (JobState::Cancelled, None) => {
            let allowed = "a retry of it must name the submission to revive";
            return Err(Refusal::WrongState { job: job.id, state: job.state, allowed });
        }
        (JobState::Complete, _) => {
            let completed_by = job.completed_by().expect("a complete job has a completion");
            return Err(Refusal::AlreadyComplete { completed_by });
        }
        (JobState::Queued | JobState::Running, _) => {
            let allowed = "only failed and cancelled jobs can be retried";
            return Err(Refusal::WrongState { job: job.id, state: job.state, allowed });
        }
    };
    if asked.newest_with_key > job.id {
        return Err(Refusal::NewerJob { job: asked.newest_with_key });
    }
    let mut change = Change::of(job, now);
    if let Some(number) = revived {
        revive(&mut change, number)?;
    }
    if !change.job.is_wanted() {
        let allowed = "every submission was withdrawn; a retry must name the one to revive";
        return Err(Refusal::WrongState { job: change.job.id, state: change.job.state, allowed });
    }
    change.record(What::Retried);
    let job = &mut change.job;
    (job.failures, job.losses, job.failed_finally) = (0, 0, false);
    job.dead_letter = None;
    job.run_at = now;
    change.move_to(JobState::Queued);
    Ok(change.done(()))
}

fn revive(change: &mut Change, number: Number) -> Result<(), Refusal> {
    let submission = change.job.submissions.iter_mut().find(|found| found.number == number);
    let submission = submission
        .ok_or_else(|| Refusal::NotFound { what: "submission", id: number.to_string() })?;
    if submission.withdrawn_at.take().is_none() {
        // Never withdrawn: there is nothing to revive, and how it came here stays told.
        return Ok(());
    }
    submission.how = crate::history::Joined::Revived;
    change.record(What::Submitted { submission: number, how: crate::history::Joined::Revived });
    Ok(())
}
