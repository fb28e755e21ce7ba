//! What becomes of attempts whose deadline passed.

use crate::{
    Timestamp,
    job::{CloseReason, DeadLetter, Job, JobState},
};

use super::{Applied, Change, requeue::failure_that_decided};

/// A tick over a running job: gives it up if nothing can save it any more. Answers whether it did.
///
/// Nothing else happens at a deadline: the job stays `running` and claimable, and its worker may
/// still renew or complete as long as nobody has replaced it.
pub fn expire(job: Job, now: Timestamp) -> Applied<bool> {
    if job.state != JobState::Running || !job.is_claimable(now) || !job.is_on_last_chance() {
        return Applied::unchanged(job, false);
    }
    let mut change = Change::of(job, now);
    let gave_up = give_up_if_spent(&mut change);
    change.done(gave_up)
}

/// Closes what is still open as superseded, which is one loss however many there were, and makes
/// the job `failed` if failures reported before decide so, or if the losses exceed those allowed:
/// a job that kills its workers must not kill them for ever.
pub(super) fn give_up_if_spent(change: &mut Change) -> bool {
    if change.close_open(CloseReason::Superseded) == 0 {
        return false;
    }
    change.job.losses += 1;
    let dead_letter = if change.job.has_failed_for_good() {
        failure_that_decided(&change.job)
    } else if change.job.losses > change.job.retry.losses_allowed {
        lost_repeatedly(&change.job)
    } else {
        return false;
    };
    change.job.dead_letter = Some(dead_letter);
    change.move_to(JobState::Failed);
    true
}

fn lost_repeatedly(job: &Job) -> DeadLetter {
    let (losses, allowed) = (job.losses, job.retry.losses_allowed);
    DeadLetter {
        reason: "lost_repeatedly".to_owned(),
        message: format!(
            "its worker was lost {losses} times, {allowed} losses are allowed; the job may be \
             killing its workers"
        ),
    }
}
