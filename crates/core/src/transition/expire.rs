//! What becomes of attempts whose deadline passed.

use crate::{
    Timestamp,
    job::{CloseReason, DeadLetter, Job, JobState},
};

use super::{Applied, Change};

/// A tick over a running job: gives it up if it has been lost too often. Answers whether it did.
///
/// Nothing else happens at a deadline: the job stays `running` and claimable, and its worker may
/// still renew or complete as long as nobody has replaced it.
pub fn expire(job: Job, now: Timestamp) -> Applied<bool> {
    let spent = job.losses >= job.retry.losses_allowed;
    if job.state != JobState::Running || !job.is_claimable(now) || !spent {
        return Applied::unchanged(job, false);
    }
    let mut change = Change::of(job, now);
    let gave_up = give_up_if_lost_too_often(&mut change);
    change.done(gave_up)
}

/// Closes what is still open as superseded, which is one loss however many there were, and makes
/// the job `failed` if that exceeds the losses allowed. A job that kills its workers must not
/// kill them for ever.
pub(super) fn give_up_if_lost_too_often(change: &mut Change) -> bool {
    if change.close_open(CloseReason::Superseded) == 0 {
        return false;
    }
    change.job.losses += 1;
    let (losses, allowed) = (change.job.losses, change.job.retry.losses_allowed);
    if losses <= allowed {
        return false;
    }
    change.job.dead_letter = Some(DeadLetter {
        reason: "lost_repeatedly".to_owned(),
        message: format!(
            "its worker was lost {losses} times, {allowed} losses are allowed; the job may be \
             killing its workers"
        ),
    });
    change.move_to(JobState::Failed);
    true
}
