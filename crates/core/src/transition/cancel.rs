//! Cancelling: a submission is withdrawn; the job goes when nobody wants it any more.

use crate::{
    Number, Timestamp,
    history::What,
    job::{CloseReason, Job, JobState},
    refusal::Refusal,
};

use super::{Applied, Change};

/// Which submissions are withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// One, by its number.
    One(Number),
    /// All of them: for operators.
    All,
}

/// What a cancel came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// How many submissions this call withdrew.
    pub withdrawn: usize,
    /// The job's state afterwards.
    pub state: JobState,
}

/// Withdraws submissions. The last one's withdrawal cancels a live job; a job that is over stays
/// as it is, and nothing that was published is undone.
pub fn cancel(job: Job, which: Which, now: Timestamp) -> Result<Applied<Cancelled>, Refusal> {
    if let Which::One(number) = which
        && job.submission(number).is_none()
    {
        return Err(Refusal::NotFound { what: "submission", id: number.to_string() });
    }
    let mut change = Change::of(job, now);
    let mut withdrawn = Vec::new();
    for submission in &mut change.job.submissions {
        let named = which == Which::All || which == Which::One(submission.number);
        if named && submission.withdrawn_at.is_none() {
            submission.withdrawn_at = Some(now);
            withdrawn.push(submission.number);
        }
    }
    for submission in &withdrawn {
        change.record(What::Withdrawn { submission: *submission });
    }
    if change.job.state.is_live() && !change.job.is_wanted() {
        change.close_open(CloseReason::Cancelled);
        change.move_to(JobState::Cancelled);
    }
    let answer = Cancelled { withdrawn: withdrawn.len(), state: change.job.state };
    Ok(change.done(answer))
}
