//! What submitters and operators do to a job: cancel, retry.

use palisade_core::{
    Digest, JobId, Refusal,
    lease::Moment,
    transition::{self, Which},
};

use crate::{
    command::{Cancel, CancelAnswer, Retry, RetryAnswer},
    tables::{Scope, Tables},
};

use super::{Outcome, collect::keep_again, ledger::Request, write};

pub(super) fn cancel(
    tables: &mut dyn Tables,
    cancel: Cancel,
    now: Moment,
) -> Outcome<CancelAnswer> {
    let Cancel { job, which, request_id } = cancel;
    let asked = match which {
        Which::One(number) => format!("cancel {number}"),
        Which::All => "cancel all".to_owned(),
    };
    let request = Request::new(Scope::Job(job), request_id, Digest::of(asked.as_bytes()));
    match request.answered(tables)? {
        Ok(None) => {}
        Ok(Some(answer)) => return Ok(Ok(answer)),
        Err(refusal) => return Ok(Err(refusal)),
    }
    let Some(record) = tables.job(job)? else { return Ok(Err(no_job(job))) };
    let before = record.clone();
    let applied = match transition::cancel(record, which, now.at) {
        Ok(applied) => applied,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let (_, cancelled) = write(tables, Some(&before), applied)?;
    let answer = CancelAnswer { withdrawn: cancelled.withdrawn, state: cancelled.state };
    request.keep(tables, &answer)?;
    Ok(Ok(answer))
}

pub(super) fn retry(tables: &mut dyn Tables, retry: Retry, now: Moment) -> Outcome<RetryAnswer> {
    let Retry { job, submission, request_id } = retry;
    let asked = match submission {
        Some(number) => format!("retry {number}"),
        None => "retry".to_owned(),
    };
    let request = Request::new(Scope::Job(job), request_id, Digest::of(asked.as_bytes()));
    match request.answered(tables)? {
        Ok(None) => {}
        Ok(Some(answer)) => return Ok(Ok(answer)),
        Err(refusal) => return Ok(Err(refusal)),
    }
    let Some(record) = tables.job(job)? else { return Ok(Err(no_job(job))) };
    let newest = tables.newest_job(&record.tenant, record.key)?;
    let asked = transition::Retry { submission, newest_with_key: newest.unwrap_or(record.id) };
    let before = record.clone();
    let applied = match transition::retry(record, asked, now.at) {
        Ok(applied) => applied,
        Err(refusal) => return Ok(Err(refusal)),
    };
    // A job whose time was over does not keep its inputs; they may have been collected.
    let missing = keep_again(tables, job)?;
    if !missing.is_empty() {
        return Ok(Err(Refusal::MissingBlob { field: "inputs".to_owned(), digests: missing }));
    }
    let (record, ()) = write(tables, Some(&before), applied)?;
    let answer = RetryAnswer { state: record.state };
    request.keep(tables, &answer)?;
    Ok(Ok(answer))
}

fn no_job(job: JobId) -> Refusal {
    Refusal::NotFound { what: "job", id: job.to_string() }
}
