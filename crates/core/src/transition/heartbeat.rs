//! Renewing: a heartbeat for one lease.

use crate::{
    Number,
    history::What,
    job::{CloseReason, Job},
    lease::{Moment, Pair},
    refusal::Refusal,
};

use super::{Applied, Change, closed_by, pair};

/// What a heartbeat is told of one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beat {
    /// Held, for a ttl from now.
    Held,
    /// Lost: stop, discard, report nothing.
    Lost(LostReason),
    /// Nobody wants the job any more: stop likewise.
    Cancelled,
}

/// Why a lease is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostReason {
    /// What closed the attempt.
    pub reason: CloseReason,
    /// The lowest token still accepted.
    pub fence: Number,
    /// The token that completed the job, if it is complete.
    pub completed_by: Option<Number>,
}

/// Renews the attempt's lease, also after its deadline as long as nobody has replaced it.
///
/// The history has an entry when the renewal must be durable before it is answered, and when it
/// came after the deadline.
pub fn heartbeat(job: Job, shown: &Pair, now: Moment) -> Result<Applied<Beat>, Refusal> {
    let attempt = pair::named(&job, shown)?;
    match closed_by(attempt) {
        Some(CloseReason::Cancelled) => Ok(Applied::unchanged(job, Beat::Cancelled)),
        Some(reason) => {
            let (fence, completed_by) = (job.fence, job.completed_by());
            let lost = LostReason { reason, fence, completed_by };
            Ok(Applied::unchanged(job, Beat::Lost(lost)))
        }
        None => {
            let before = attempt.lease;
            let durable = before.renewal_must_be_durable(now);
            let mut change = Change::of(job, now.at);
            let renewed = change.job.attempts.iter_mut().find(|a| a.token == shown.token);
            let renewed = renewed.expect("the pair was found above");
            renewed.lease = renewed.lease.renewed(now);
            let token = shown.token;
            if !before.is_within(now.at) {
                let (renewed_at, deadline) = (before.renewed_at, before.deadline);
                change.record(What::RenewedLate { token, renewed_at, deadline });
            }
            if durable {
                change.record(What::Renewed { token });
            }
            Ok(change.done(Beat::Held))
        }
    }
}
