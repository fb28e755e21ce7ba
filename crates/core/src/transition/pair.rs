//! Finding the attempt that a worker's verb names.

use crate::{
    job::{Attempt, CloseReason, Job},
    lease::Pair,
    refusal::Refusal,
};

/// The attempt that the pair names. Token, lease id and job must belong together: another job's
/// pair, or a right token with a stranger's lease id, is as good as none.
pub(super) fn named<'job>(job: &'job Job, pair: &Pair) -> Result<&'job Attempt, Refusal> {
    job.attempt(pair.token)
        .filter(|attempt| attempt.lease_id == pair.lease_id)
        .ok_or_else(|| Refusal::UnknownToken { token: pair.token, subject: job.id.to_string() })
}

/// The refusal for an attempt that something else than the asking verb has closed: as of now, so
/// that a late author learns who completed the job since.
pub(super) fn stale(job: &Job, reason: CloseReason) -> Refusal {
    match (reason, job.completed_by()) {
        (CloseReason::Outrun, Some(completed_by)) => Refusal::AlreadyComplete { completed_by },
        (_, completed_by) => Refusal::StaleToken { fence: job.fence, reason, completed_by },
    }
}
