//! Claiming: a job goes to a worker, under a new token.

use crate::{
    LeaseId, Number, RequestId, SessionId, WorkerName,
    history::What,
    job::{Attempt, Job, JobState},
    lease::{Lease, Moment},
};

use super::{Applied, Change, expire::give_up_if_spent};

/// Who claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// The worker as its operator calls it.
    pub worker: WorkerName,
    /// Its session.
    pub session: SessionId,
    /// The claim's request id.
    pub request_id: RequestId,
    /// The last heartbeat's `seq` sent before this claim.
    pub seq: u64,
    /// The lease's length, in ms.
    pub ttl_ms: u64,
}

/// A pair that was never given to anybody. Unused ones are thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fresh {
    /// Drawn from the counter inside the transaction, after the record was locked.
    pub token: Number,
    /// Random.
    pub lease_id: LeaseId,
}

/// What a claim came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// An attempt was opened under the fresh pair.
    Yes,
    /// The job has been lost too often, or had failed for good beside what was lost, and is
    /// `failed` now.
    GivenUp,
    /// It is not claimable.
    No,
}

/// Grants the job to the claimant, if it is claimable.
///
/// # Panics
/// When the fresh token is below the fence or not above every token of the job: the counter would
/// have gone backwards, and no fence would hold any more.
pub fn claim(job: Job, by: Claimant, fresh: Fresh, now: Moment) -> Applied<Granted> {
    let backup = !job.is_claimable(now.at);
    if backup && !wants_backup(&job, &by, now) {
        return Applied::unchanged(job, Granted::No);
    }
    let mut change = Change::of(job, now.at);
    if !backup && give_up_if_spent(&mut change) {
        return change.done(Granted::GivenUp);
    }
    open(&mut change, by, fresh, now, backup);
    change.done(Granted::Yes)
}

/// Whether a second attempt may run beside the live one: it is time for it, and the live one is
/// another session's.
fn wants_backup(job: &Job, by: &Claimant, now: Moment) -> bool {
    job.backup_at().is_some_and(|at| at <= now.at)
        && job.open_attempts().all(|first| first.session != by.session)
}

fn open(change: &mut Change, by: Claimant, fresh: Fresh, now: Moment, backup: bool) {
    let job = &mut change.job;
    let last = job.attempts.last().map_or(Number::ZERO, |attempt| attempt.token);
    assert!(fresh.token >= job.fence && fresh.token > last, "the counter went backwards");
    let attempt = Attempt {
        token: fresh.token,
        lease_id: fresh.lease_id,
        worker: by.worker.clone(),
        session: by.session.clone(),
        claim: by.request_id,
        claim_seq: by.seq,
        granted_at: now.at,
        backup,
        lease: Lease::granted(by.ttl_ms, now),
        closed: None,
    };
    job.attempts.push(attempt);
    if !backup {
        // A backup closes nothing and raises no fence: the first attempt may still complete.
        job.fence = fresh.token;
    }
    change.record(What::Granted {
        token: fresh.token,
        worker: by.worker,
        session: by.session,
        ttl_ms: by.ttl_ms,
        backup,
    });
    if change.job.state != JobState::Running {
        change.move_to(JobState::Running);
    }
}
