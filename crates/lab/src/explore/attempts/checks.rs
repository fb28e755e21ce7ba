//! What must never be seen in the world of attempts: in an answer, in a step, in a record, or
//! against what somebody was told.

use std::collections::BTreeSet;

use palisade_core::{
    Refusal,
    job::{CloseReason, Job, JobState},
    lease::Pair,
    transition::Beat,
};
use palisade_store::{Failure, command::Answer};

use crate::engine::CrashEngine;

use super::{Promise, Request, bench, is_open, job_of};

/// What an answer must never say.
pub(super) fn check_answer(
    before: &CrashEngine,
    request: &Request,
    answer: &Result<Answer, Failure>,
) -> Result<(), String> {
    match (request, answer) {
        (Request::Beat { lease: Some(pair), .. }, Ok(Answer::Heartbeat(beats)))
            if beats.leases.first() == Some(&Some(Beat::Held)) && !is_open(before, *pair) =>
        {
            Err(format!("token {} hears `held`, and was closed before", pair.token))
        }
        (Request::Beat { worker, seq, pending, .. }, Ok(Answer::Heartbeat(beats))) => {
            for (_, token) in &beats.released {
                let attempt = job_of(before).attempt(*token).expect("it was just released");
                let pending = pending.map(|number| bench::claim(*worker, number, 0).request_id);
                if attempt.claim_seq >= *seq || Some(&attempt.claim) == pending.as_ref() {
                    return Err(format!("token {token} is released, and its reply is on its way"));
                }
            }
            Ok(())
        }
        (Request::Claim { .. }, Ok(Answer::Claim(claimed))) => {
            let closed =
                |pair: Pair| job_of(before).attempt(pair.token).is_some() && !is_open(before, pair);
            let lost = claimed.grants.iter().find(|grant| closed(grant.pair));
            let told =
                |pair: Pair| format!("token {} is granted again, and was closed", pair.token);
            lost.map_or(Ok(()), |grant| Err(told(grant.pair)))
        }
        (
            Request::Complete { pair, .. } | Request::Fail { pair, .. },
            Err(Failure::Refused(Refusal::StaleToken { reason, .. })),
        ) if *reason == own_reason(request) => {
            Err(format!("token {} did it, and is refused when it asks again", pair.token))
        }
        (Request::Complete { pair, .. }, Ok(Answer::Complete(completed)))
            if completed.completion.token != pair.token =>
        {
            Err(format!("token {} completes in another's name", pair.token))
        }
        (Request::Complete { pair, .. }, Err(Failure::Refused(Refusal::StaleToken { .. })))
            if is_open(before, *pair) =>
        {
            Err(format!("token {} is open, and refused as stale", pair.token))
        }
        _ => Ok(()),
    }
}

/// What this very verb closes an attempt for.
fn own_reason(request: &Request) -> CloseReason {
    match request {
        Request::Fail { .. } => CloseReason::Failed,
        Request::Claim { .. } | Request::Beat { .. } | Request::Complete { .. } => {
            CloseReason::Completed
        }
    }
}

/// What one step must never do to the record.
pub(super) fn check_step(before: &CrashEngine, after: &CrashEngine) -> Result<(), String> {
    let (old, new) = (job_of(before), job_of(after));
    if new.fence < old.fence {
        return Err("the fence falls".to_owned());
    }
    let joined =
        new.attempts.len() > old.attempts.len() && new.attempts.last().is_some_and(|it| it.backup);
    let was_open = |token| old.attempt(token).is_none_or(|attempt| attempt.closed.is_none());
    let ended = new.attempts.iter().any(|it| it.closed.is_some() && was_open(it.token));
    if joined && (new.fence != old.fence || ended) {
        return Err("a backup closes an attempt or raises the fence".to_owned());
    }
    if old.completion.is_some() && new.completion != old.completion {
        return Err("a completion changes".to_owned());
    }
    Ok(())
}

/// What a record must never look like.
pub(super) fn wrong_record(job: &Job) -> Option<String> {
    let open = job.open_attempts().count();
    let closed_for = |reason| {
        let closed = job.attempts.iter().filter_map(|attempt| attempt.closed.as_ref());
        closed.filter(|closed| closed.reason == reason).count()
    };
    let last = job.attempts.last().map(|attempt| attempt.token);
    let backups = job.open_attempts().filter(|attempt| attempt.backup).count();
    if open > 2 || (open == 2 && backups == 0) {
        return Some("two attempts are open, and neither is a backup".to_owned());
    }
    let sessions: BTreeSet<_> = job.open_attempts().map(|attempt| &attempt.session).collect();
    if sessions.len() != open {
        return Some("a worker's backup is itself".to_owned());
    }
    if job.state != JobState::Running && open > 0 {
        return Some(format!("the job is {}, and an attempt is open", job.state));
    }
    if job.state != JobState::Running && last.is_some_and(|last| job.fence <= last) {
        return Some(format!("the job is {}, and its last token is not fenced off", job.state));
    }
    // What is lost together is one loss.
    let lost = job.attempts.iter().filter_map(|attempt| attempt.closed.as_ref());
    let lost = lost.filter(|closed| closed.reason == CloseReason::Superseded);
    let losses = lost.map(|closed| closed.at).collect::<BTreeSet<_>>().len();
    let failures = closed_for(CloseReason::Failed);
    if losses > bench::RETRY.losses_allowed as usize && job.state != JobState::Failed {
        return Some(format!("lost {losses} times, and still {}", job.state));
    }
    let spent = losses > bench::RETRY.losses_allowed as usize
        || failures >= bench::RETRY.failures_allowed as usize;
    if job.state == JobState::Failed && !spent {
        return Some(format!("given up after {losses} loss(es) and {failures} failure(s)"));
    }
    let live = job.state.is_live();
    if failures >= bench::RETRY.failures_allowed as usize && live && open == 0 {
        return Some(format!("failed {failures} times, and still {}", job.state));
    }
    let claims = job.attempts.iter().map(|attempt| (&attempt.session, &attempt.claim));
    if claims.collect::<BTreeSet<_>>().len() != job.attempts.len() {
        return Some("a claim asked again was granted something new".to_owned());
    }
    None
}

/// A promise that is not kept.
pub(super) fn unkept(job: &Job, promise: &Promise) -> Option<String> {
    let kept = match promise {
        Promise::Granted(token) => job.attempt(*token).is_some(),
        Promise::Closed(token) => {
            job.attempt(*token).is_none_or(|attempt| attempt.closed.is_some())
        }
        Promise::Completed(token, content) => job.completion.as_ref().is_some_and(|completion| {
            completion.token == *token && completion.manifest.outputs[0].digest == *content
        }),
    };
    (!kept).then(|| format!("somebody was told {promise:?}, and it is not so"))
}
