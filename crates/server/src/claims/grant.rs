//! What a claim was granted, on its way to whoever asked.

use palisade_store::command::{Claimed, Grant, HandBack};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::dispatch::Returned;

/// A claim's answer that has not been handed over. Dropped, its grants go back to the store: a
/// client that hung up must not keep a job from others for a ttl.
#[derive(Debug)]
pub(crate) struct Undelivered {
    /// The answer.
    pub(crate) claimed: Claimed,
    orphans: mpsc::UnboundedSender<Returned>,
    taken_over: CancellationToken,
}

impl Undelivered {
    pub(super) fn new(
        claimed: Claimed,
        orphans: mpsc::UnboundedSender<Returned>,
        taken_over: CancellationToken,
    ) -> Self {
        Self { claimed, orphans, taken_over }
    }

    /// Hands it over.
    pub(crate) fn deliver(mut self) -> Claimed {
        let (again, next_at) = (self.claimed.again, self.claimed.next_at);
        let (grants, lost) =
            (std::mem::take(&mut self.claimed.grants), std::mem::take(&mut self.claimed.lost));
        Claimed { grants, again, lost, next_at }
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        // Whoever took over this claim's wait is given the same grants. And those that were granted
        // to an earlier call may be under way by now: a claimer that has gone is told by its
        // session's end, one that never heard of them by its next heartbeat.
        if self.taken_over.is_cancelled() || self.claimed.again {
            return;
        }
        for Grant { job, pair, .. } in &self.claimed.grants {
            let Some(attempt) = job.attempt(pair.token) else { continue };
            let seen_at = attempt.lease.renewed_at;
            let unheard = HandBack { job: job.id, pair: *pair, seen_at };
            // The error says that the server has ended: the lease's time does the rest.
            let _ = self.orphans.send(Returned::Grant(unheard));
        }
    }
}
