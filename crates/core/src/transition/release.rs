//! Releasing: the worker hands its attempt back, or a server does that nobody took the grant from.
//! It counts for nothing.

use crate::{
    Timestamp,
    job::{CloseReason, Closed, Job, Requeued},
    lease::Pair,
    refusal::Refusal,
};

use super::{Applied, Change, closed_by, pair, requeue::give_back};

/// Closes the attempt as released. When no other is open, the job is `queued` at once, or
/// `failed` if a failure reported earlier decided so.
pub fn release(job: Job, shown: &Pair, now: Timestamp) -> Result<Applied<Requeued>, Refusal> {
    let attempt = pair::named(&job, shown)?;
    match closed_by(attempt) {
        Some(CloseReason::Released) => {
            let recorded = attempt.closed.as_ref().and_then(|closed| closed.requeued);
            let recorded = recorded.expect("a released attempt keeps its answer");
            Ok(Applied::unchanged(job, recorded))
        }
        Some(reason) => Err(pair::stale(&job, reason)),
        None => {
            let mut change = Change::of(job, now);
            let closed =
                Closed { at: now, reason: CloseReason::Released, failure: None, requeued: None };
            let requeued = give_back(&mut change, shown.token, closed, now);
            Ok(change.done(requeued))
        }
    }
}

/// Releases a grant whose claimer had gone before it was handed over, by whoever saw its lease as
/// it was at `seen_at`. Renewed since, the claimer has heard of it after all, by asking another
/// server for the same: then nothing changes. Answers whether it was released.
pub fn hand_back(
    job: Job,
    shown: &Pair,
    seen_at: Timestamp,
    now: Timestamp,
) -> Result<Applied<bool>, Refusal> {
    let attempt = pair::named(&job, shown)?;
    if attempt.closed.is_some() || attempt.lease.renewed_at > seen_at {
        return Ok(Applied::unchanged(job, false));
    }
    let Applied { job, history, .. } = release(job, shown, now)?;
    Ok(Applied { job, answer: true, history })
}
