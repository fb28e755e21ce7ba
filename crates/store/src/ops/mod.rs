//! The operations: each loads records, calls the rule of `core`, and writes what it answers.
//!
//! They are written once, over [`Tables`], for every engine. They know no SQL and no clock, and
//! are synchronous: an engine that has to fetch first does so before it calls them.

mod blobs;
mod bounds;
mod claim;
mod collect;
mod forget;
mod heartbeat;
mod housekeeping;
mod ledger;
mod locks;
mod objects;
mod outbox;
mod publications;
mod submit;
mod verbs;
mod wishes;

use palisade_core::{Refusal, job::Job, lease::Moment, transition::Applied};

use crate::{
    command::{Answer, Command},
    fault::Fault,
    tables::{Keeper, Tables},
};

/// A rule's answer, within what the engine may fail at.
pub type Outcome<A> = Result<Result<A, Refusal>, Fault>;

/// Runs one command. Upon a refusal nothing is changed but the journal; upon a fault the caller
/// rolls back.
pub fn apply(tables: &mut dyn Tables, command: Command, now: Moment) -> Outcome<Answer> {
    if let Err(refusal) = bounds::check(&command) {
        return Ok(Err(refusal));
    }
    Ok(match command {
        Command::Submit(submit) => submit::submit(tables, submit, now)?.map(Answer::Submit),
        Command::Claim(claim) => claim::claim(tables, &claim, now)?.map(Answer::Claim),
        Command::Heartbeat(beat) => {
            heartbeat::heartbeat(tables, &beat, now)?.map(Answer::Heartbeat)
        }
        Command::Complete(complete) => {
            verbs::complete(tables, complete, now)?.map(Answer::Complete)
        }
        Command::Fail(fail) => verbs::fail(tables, fail, now)?.map(Answer::Fail),
        Command::HandBack(asked) => verbs::hand_back(tables, &asked, now)?.map(Answer::HandBack),
        Command::Release(release) => verbs::release(tables, &release, now)?.map(Answer::Release),
        Command::Cancel(cancel) => wishes::cancel(tables, cancel, now)?.map(Answer::Cancel),
        Command::Retry(retry) => wishes::retry(tables, retry, now)?.map(Answer::Retry),
        Command::BeginBlob(begin) => blobs::begin(tables, begin, now)?.map(Answer::BeginBlob),
        Command::FinishBlob(finish) => blobs::finish(tables, finish)?.map(Answer::FinishBlob),
        Command::Suspect(suspect) => {
            housekeeping::suspect(tables, &suspect, now)?.map(Answer::Suspect)
        }
        Command::Tick => housekeeping::tick(tables, now)?.map(Answer::Tick),
        other => return apply_to_effects(tables, other, now),
    })
}

/// The commands that concern what surrounds the jobs.
fn apply_to_effects(tables: &mut dyn Tables, command: Command, now: Moment) -> Outcome<Answer> {
    Ok(match command {
        Command::AcquireLock(asked) => {
            locks::acquire(tables, &asked, now)?.map(Answer::AcquireLock)
        }
        Command::RenewLock(asked) => locks::renew(tables, &asked, now)?.map(Answer::RenewLock),
        Command::ReleaseLock(asked) => {
            locks::release(tables, &asked, now)?.map(Answer::ReleaseLock)
        }
        Command::LeaveLock(asked) => locks::leave(tables, &asked, now)?.map(Answer::LeaveLock),
        Command::PutObject(asked) => objects::put(tables, asked, now)?.map(Answer::PutObject),
        Command::DeleteObject(asked) => {
            objects::delete(tables, asked, now)?.map(Answer::DeleteObject)
        }
        Command::RaiseObject(asked) => {
            objects::raise(tables, &asked, now)?.map(Answer::RaiseObject)
        }
        Command::Collect(asked) => collect::collect(tables, &asked, now)?.map(Answer::Collect),
        Command::MarkCleared(asked) => {
            collect::mark_cleared(tables, &asked)?.map(Answer::MarkCleared)
        }
        Command::ForgetBlobs(asked) => {
            collect::forget(tables, &asked, now)?.map(Answer::ForgetBlobs)
        }
        Command::ReleaseJobs(asked) => {
            collect::release_jobs(tables, &asked, now)?.map(Answer::ReleaseJobs)
        }
        Command::CreateEndpoint(asked) => {
            outbox::create(tables, asked, now)?.map(Answer::CreateEndpoint)
        }
        Command::RotateSecret(asked) => {
            outbox::rotate(tables, &asked, now)?.map(Answer::RotateSecret)
        }
        Command::DeleteEndpoint(asked) => {
            outbox::delete(tables, &asked)?.map(Answer::DeleteEndpoint)
        }
        Command::LeaseDeliveries(asked) => {
            outbox::lease(tables, &asked, now)?.map(Answer::LeaseDeliveries)
        }
        Command::SettleDelivery(asked) => {
            outbox::settle(tables, asked, now)?.map(Answer::SettleDelivery)
        }
        Command::Redeliver(asked) => outbox::redeliver(tables, &asked, now)?.map(Answer::Redeliver),
        Command::TellProgress(asked) => {
            outbox::progress(tables, asked, now)?.map(Answer::TellProgress)
        }
        Command::Forget(asked) => forget::forget(tables, &asked)?.map(Answer::Forget),
        Command::Publish(asked) => publications::publish(tables, asked, now)?.map(Answer::Publish),
        other => unreachable!("the caller has taken {other:?}"),
    })
}

/// Writes what a rule answered: the record if it changed, the journal, the pins of attempts that
/// were closed, the notifications of what happened, and which publications are due now.
fn write<A>(
    tables: &mut dyn Tables,
    before: Option<&Job>,
    applied: Applied<A>,
) -> Result<(Job, A), Fault> {
    let Applied { job, answer, history } = applied;
    if history.is_empty() {
        return Ok((job, answer));
    }
    tables.put_job(before, &job)?;
    publications::follow(tables, before, &job)?;
    for attempt in job.attempts.iter().filter(|attempt| attempt.closed.is_some()) {
        let was_open = before
            .and_then(|before| before.attempt(attempt.token))
            .is_some_and(|attempt| attempt.closed.is_none());
        if was_open {
            tables.drop_keeper(&Keeper::Attempt(attempt.token))?;
        }
    }
    let at = history[0].at;
    tables.append(&history)?;
    outbox::enqueue(tables, before, &job, at)?;
    Ok((job, answer))
}
