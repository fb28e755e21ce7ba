//! Failing: the worker reports that its attempt came to nothing.

use crate::{
    Timestamp,
    job::{CloseReason, Closed, Failure, FailureKind, Job, Requeued},
    lease::Pair,
    refusal::Refusal,
};

use super::{Applied, Change, closed_by, pair, requeue::give_back};

/// Closes the attempt as failed. When no other is open, the job is `queued` again after a
/// backoff, of which `chance` (random) is the jitter; or `failed`.
pub fn fail(
    job: Job,
    shown: &Pair,
    failure: Failure,
    chance: u64,
    now: Timestamp,
) -> Result<Applied<Requeued>, Refusal> {
    let attempt = pair::named(&job, shown)?;
    match closed_by(attempt) {
        Some(CloseReason::Failed) => {
            let recorded = attempt.closed.as_ref().and_then(|closed| closed.requeued);
            let recorded = recorded.expect("a failed attempt keeps its answer");
            Ok(Applied::unchanged(job, recorded))
        }
        Some(reason) => Err(pair::stale(&job, reason)),
        None => {
            let mut change = Change::of(job, now);
            change.job.failures += 1;
            change.job.failed_finally |= failure.kind == FailureKind::Final;
            let wait_ms = change.job.retry.wait_ms(change.job.failures, chance);
            let closed = Closed {
                at: now,
                reason: CloseReason::Failed,
                failure: Some(failure),
                requeued: None,
            };
            let requeued = give_back(&mut change, shown.token, closed, now.plus_ms(wait_ms));
            Ok(change.done(requeued))
        }
    }
}
