//! What must hold of every record, and of every step from one to the next.

use crate::{
    Timestamp,
    history::Event,
    job::{Attempt, CloseReason, Job, JobState, Submission},
    time::granted_span_ms,
};

/// What holds of a record at rest.
pub(super) fn record(job: &Job) {
    let running = job.state == JobState::Running;
    assert_eq!(job.has_open_attempt(), running, "attempts are open exactly while it is running");
    assert_eq!(job.completion.is_some(), job.state == JobState::Complete);
    assert_eq!(job.dead_letter.is_some(), job.state == JobState::Failed);
    assert!(job.attempts.is_sorted_by(|left, right| left.token < right.token), "tokens rise");
    assert!(job.submissions.is_sorted_by(|left, right| left.number < right.number));
    if running {
        let newest = job.attempts.iter().filter(|attempt| !attempt.backup).map(|a| a.token).max();
        assert_eq!(Some(job.fence), newest, "the fence is the newest grant's that replaced others");
        assert!(job.open_attempts().all(|attempt| attempt.token >= job.fence));
    } else {
        assert!(job.attempts.iter().all(|attempt| attempt.token < job.fence), "the fence is past");
    }
    if job.state.is_live() {
        assert!(job.is_wanted(), "what nobody wants is not rendered");
        assert!(job.losses <= job.retry.losses_allowed);
    }
    if job.state == JobState::Queued {
        assert!(!job.has_failed_for_good(), "what failed for good is not tried again");
    }
    let completed = closed_as(job, CloseReason::Completed);
    assert_eq!(completed.len(), usize::from(job.completion.is_some()), "one completion at most");
    if let Some(completion) = &job.completion {
        assert_eq!(completed[0].token, completion.token);
        assert_eq!(completed[0].worker, completion.worker);
    }
    let limit = if job.backup_after_ms.is_some() { 2 } else { 1 };
    assert!(job.open_attempts().count() <= limit, "one attempt, and a backup where asked for");
    for attempt in &job.attempts {
        closed_well(attempt);
    }
}

fn closed_as(job: &Job, reason: CloseReason) -> Vec<&Attempt> {
    let is = |attempt: &&Attempt| attempt.closed.as_ref().is_some_and(|c| c.reason == reason);
    job.attempts.iter().filter(is).collect()
}

fn closed_well(attempt: &Attempt) {
    let Some(closed) = &attempt.closed else { return };
    let failed = closed.reason == CloseReason::Failed;
    let given_back = failed || closed.reason == CloseReason::Released;
    assert_eq!(closed.failure.is_some(), failed, "a failure is kept, and nothing else is one");
    assert_eq!(closed.requeued.is_some(), given_back, "the answer stays with the attempt");
}

/// What holds of a step.
pub(super) fn step(before: &Job, after: &Job, history: &[Event], now: Timestamp) {
    record(after);
    same_identity(before, after);
    assert!(after.fence >= before.fence, "the fence never falls");
    if let Some(completion) = &before.completion {
        assert_eq!(after.completion.as_ref(), Some(completion), "a completion sticks");
        assert_eq!(after.state, JobState::Complete, "nobody moves on what is complete");
    }
    assert!(after.attempts.len() >= before.attempts.len(), "attempts are never forgotten");
    assert!(after.attempts.len() <= before.attempts.len() + 1, "a step grants once");
    for (was, is) in before.attempts.iter().zip(&after.attempts) {
        attempt_step(was, is, now);
    }
    assert!(after.submissions.len() >= before.submissions.len());
    for (was, is) in before.submissions.iter().zip(&after.submissions) {
        let decided = was.publication.as_ref().filter(|publication| publication.outcome.is_some());
        if decided.is_some() {
            assert_eq!(was.publication, is.publication, "what came of a publication stays");
        }
        let name = |submission: &Submission| submission.publication.clone().map(|one| one.key);
        assert_eq!((was.number, name(was)), (is.number, name(is)));
    }
    for event in history {
        assert_eq!((event.job(), event.at), (Some(after.id), now));
    }
    journalled(before, after, history);
    moved_lawfully(before.state, after.state);
    if before.state != after.state {
        assert_eq!(after.moved_at, now);
    }
}

fn same_identity(before: &Job, after: &Job) {
    let identity = |job: &Job| {
        (job.id, job.tenant.clone(), job.spec.clone(), job.key, job.retry, job.created_at)
    };
    assert_eq!(identity(before), identity(after));
}

fn attempt_step(was: &Attempt, is: &Attempt, now: Timestamp) {
    if was.closed.is_some() {
        assert_eq!(was, is, "a closed attempt is never touched again");
        return;
    }
    let as_it_was = Attempt { lease: was.lease, closed: None, ..is.clone() };
    assert_eq!(*was, as_it_was, "only its lease changes, until it is closed");
    assert!(is.closed.is_none() || was.lease == is.lease, "what is closed is not renewed");
    let furthest = now.plus_ms(granted_span_ms(is.lease.ttl_ms));
    assert!(is.lease.deadline <= furthest, "no deadline is further ahead than a ttl");
    assert!(is.closed.as_ref().is_none_or(|closed| closed.at == now));
}

/// The journal grows exactly when the record changes, but for renewals that live in memory.
fn journalled(before: &Job, after: &Job, history: &[Event]) {
    if !history.is_empty() {
        assert_ne!(before, after, "what is journalled has happened");
        return;
    }
    let mut but_for_leases = after.clone();
    for (attempt, was) in but_for_leases.attempts.iter_mut().zip(&before.attempts) {
        if was.lease.life == attempt.lease.life {
            attempt.lease = was.lease;
        }
    }
    assert_eq!(*before, but_for_leases, "what changed is journalled");
}

fn moved_lawfully(from: JobState, to: JobState) {
    use JobState::{Cancelled, Complete, Failed, Queued, Running};
    let lawful = match from {
        Queued => matches!(to, Queued | Running | Cancelled),
        Running => true,
        Complete => to == Complete,
        Failed => matches!(to, Failed | Queued),
        Cancelled => matches!(to, Cancelled | Queued),
    };
    assert!(lawful, "{from} does not move to {to}");
}
