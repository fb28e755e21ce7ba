//! What becomes of a job when an attempt is given back.

use crate::{
    Number, Timestamp,
    job::{Closed, DeadLetter, FailureKind, Job, JobState, Requeued},
};

use super::Change;

/// Decides where the job goes once `token` is closed: it stays `running` while another attempt is
/// open; else it is `failed` if any failure reported was final or the failures allowed are used
/// up; else `queued`, not before `run_at`.
fn destination(job: &Job, token: Number, run_at: Timestamp) -> Requeued {
    if job.open_attempts().any(|attempt| attempt.token != token) {
        return Requeued { state: JobState::Running, run_at: None };
    }
    if job.has_failed_for_good() {
        return Requeued { state: JobState::Failed, run_at: None };
    }
    Requeued { state: JobState::Queued, run_at: Some(run_at) }
}

/// Closes the attempt and moves the job on. Answers what became of it.
pub(super) fn give_back(
    change: &mut Change,
    token: Number,
    mut closed: Closed,
    run_at: Timestamp,
) -> Requeued {
    let requeued = destination(&change.job, token, run_at);
    closed.requeued = Some(requeued);
    change.close(token, closed);
    match requeued.state {
        JobState::Queued => {
            change.job.run_at = run_at;
            change.move_to(JobState::Queued);
        }
        JobState::Failed => {
            change.job.dead_letter = Some(failure_that_decided(&change.job));
            change.move_to(JobState::Failed);
        }
        JobState::Running | JobState::Complete | JobState::Cancelled => {}
    }
    requeued
}

/// The dead letter tells the failure that decided: the last final one, or else the last.
pub(super) fn failure_that_decided(job: &Job) -> DeadLetter {
    // By time, not by token: the older of two attempts may have failed last.
    let deciding = job
        .attempts
        .iter()
        .filter_map(|attempt| attempt.closed.as_ref())
        .filter_map(|closed| Some((closed.at, closed.failure.as_ref()?)))
        .filter(|(_, failure)| !job.failed_finally || failure.kind == FailureKind::Final)
        .max_by_key(|(at, _)| *at);
    let (_, failure) = deciding.expect("a job fails here because a failure was reported");
    DeadLetter { reason: failure.reason.clone(), message: failure.message.clone() }
}
