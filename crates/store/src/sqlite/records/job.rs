//! A job's row. Its attempts and submissions have rows of their own.

use std::collections::BTreeMap;

use palisade_core::{
    InputName, JobId, ParameterName,
    job::{Completion, DeadLetter, Job},
    manifest::Manifest,
    retry::RetryPolicy,
    spec::{InputRef, JobKey, Spec},
};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, instant, json, number, update_one},
};

use super::{attempt, submission};

/// The columns that [`decode`] reads, in its order.
pub(in crate::sqlite) const COLUMNS: &str = "id, tenant, job_key, recipe, definition, wish, created_at_ms, priority, run_at_ms, state, \
     moved_at_ms, fence, failures, losses, failed_finally, completed_by, completed_worker, \
     completed_at_ms, manifest, dead_reason, dead_message";

/// What of a job never changes and is never searched for.
#[derive(Deserialize)]
struct StoredWish {
    inputs: BTreeMap<InputName, InputRef>,
    parameters: BTreeMap<ParameterName, String>,
    retry: RetryPolicy,
    #[serde(default)]
    backup_after_ms: Option<u64>,
}

/// The same, borrowed.
#[derive(Serialize)]
struct WishToStore<'job> {
    inputs: &'job BTreeMap<InputName, InputRef>,
    parameters: &'job BTreeMap<ParameterName, String>,
    retry: RetryPolicy,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_after_ms: Option<u64>,
}

/// A job as it is on disk: leases without the renewals that live in memory.
pub(in crate::sqlite) fn read(connection: &Connection, id: JobId) -> Result<Option<Job>, Fault> {
    let sql = "SELECT id, tenant, job_key, recipe, definition, wish, created_at_ms, priority, \
               run_at_ms, state, moved_at_ms, fence, failures, losses, failed_finally, \
               completed_by, completed_worker, completed_at_ms, manifest, dead_reason, \
               dead_message FROM jobs WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([number(id.0)]).map_err(fault)?;
    match rows.next().map_err(fault)? {
        None => Ok(None),
        Some(row) => decode(connection, &Columns::new("job", row)).map(Some),
    }
}

/// The outputs of a job, if it is complete.
pub(in crate::sqlite) fn manifest(
    connection: &Connection,
    id: JobId,
) -> Result<Option<Manifest>, Fault> {
    let sql = "SELECT id, manifest FROM jobs WHERE id = ?1 AND manifest IS NOT NULL";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([number(id.0)]).map_err(fault)?;
    match rows.next().map_err(fault)? {
        None => Ok(None),
        Some(row) => Columns::new("job", row).json(1).map(Some),
    }
}

/// Decodes a row of [`COLUMNS`], and fetches its attempts and submissions.
pub(in crate::sqlite) fn decode(
    connection: &Connection,
    columns: &Columns<'_>,
) -> Result<Job, Fault> {
    let id = columns.job(0)?;
    let wish: StoredWish = columns.json(5)?;
    Ok(Job {
        id,
        tenant: columns.parsed(1)?,
        key: JobKey(columns.digest(2)?),
        spec: Spec {
            recipe: columns.parsed(3)?,
            definition: columns.digest(4)?,
            inputs: wish.inputs,
            parameters: wish.parameters,
        },
        retry: wish.retry,
        backup_after_ms: wish.backup_after_ms,
        created_at: columns.instant(6)?,
        priority: columns.get(7)?,
        run_at: columns.instant(8)?,
        state: columns.parsed(9)?,
        moved_at: columns.instant(10)?,
        fence: columns.number(11)?,
        failures: columns.small(12)?,
        losses: columns.small(13)?,
        failed_finally: columns.get(14)?,
        completion: decode_completion(columns)?,
        dead_letter: decode_dead_letter(columns)?,
        attempts: attempt::read_all(connection, id)?,
        submissions: submission::read_all(connection, id)?,
    })
}

fn decode_completion(columns: &Columns<'_>) -> Result<Option<Completion>, Fault> {
    let Some(at) = columns.optional_instant(17)? else { return Ok(None) };
    Ok(Some(Completion {
        token: columns.number(15)?,
        worker: columns.parsed(16)?,
        at,
        manifest: columns.json(18)?,
    }))
}

fn decode_dead_letter(columns: &Columns<'_>) -> Result<Option<DeadLetter>, Fault> {
    let Some(reason) = columns.optional_text(19)? else { return Ok(None) };
    Ok(Some(DeadLetter { reason: reason.to_owned(), message: columns.get(20)? }))
}

/// Writes a job, its attempts and its submissions: of a known one, what changed.
pub(in crate::sqlite) fn write(
    connection: &Connection,
    before: Option<&Job>,
    job: &Job,
) -> Result<(), Fault> {
    let (attempts, submissions) = match before {
        None => {
            insert(connection, job)?;
            (&[][..], &[][..])
        }
        Some(before) => {
            update(connection, before, job)?;
            (&before.attempts[..], &before.submissions[..])
        }
    };
    attempt::write_changes(connection, job.id, attempts, &job.attempts)?;
    submission::write_changes(connection, job.id, submissions, &job.submissions)
}

fn insert(connection: &Connection, job: &Job) -> Result<(), Fault> {
    let sql = "INSERT INTO jobs (id, tenant, job_key, recipe, definition, wish, created_at_ms, \
               priority, run_at_ms, live, state, moved_at_ms, fence, failures, losses, \
               failed_finally, completed_by, completed_worker, completed_at_ms, manifest, \
               dead_reason, dead_message) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
               ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)";
    let wish = WishToStore {
        inputs: &job.spec.inputs,
        parameters: &job.spec.parameters,
        retry: job.retry,
        backup_after_ms: job.backup_after_ms,
    };
    let completion = job.completion.as_ref();
    let dead = job.dead_letter.as_ref();
    let values = params![
        number(job.id.0),
        job.tenant.as_str(),
        job.key.0.as_bytes(),
        job.spec.recipe.as_str(),
        job.spec.definition.as_bytes(),
        json(&wish),
        instant(job.created_at),
        job.priority,
        instant(job.run_at),
        job.state.is_live(),
        job.state.as_str(),
        instant(job.moved_at),
        number(job.fence),
        job.failures,
        job.losses,
        job.failed_finally,
        completion.map(|completion| number(completion.token)),
        completion.map(|completion| completion.worker.as_str()),
        completion.map(|completion| instant(completion.at)),
        completion.map(|completion| json(&completion.manifest)),
        dead.map(|dead| dead.reason.as_str()),
        dead.map(|dead| dead.message.as_str())
    ];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}

/// Names only the columns that may differ: an index is left alone when none of its columns is
/// named.
fn update(connection: &Connection, before: &Job, job: &Job) -> Result<(), Fault> {
    if job.state.is_live() != before.state.is_live() {
        return end_or_revive(connection, job);
    }
    if job.run_at != before.run_at {
        return requeue(connection, job);
    }
    if job.state != before.state {
        return move_on(connection, job);
    }
    if (job.fence, job.failures, job.losses, job.failed_finally, job.moved_at)
        == (before.fence, before.failures, before.losses, before.failed_finally, before.moved_at)
    {
        return Ok(());
    }
    stay(connection, job)
}

fn stay(connection: &Connection, job: &Job) -> Result<(), Fault> {
    let sql = "UPDATE jobs SET moved_at_ms = ?2, fence = ?3, failures = ?4, losses = ?5, \
               failed_finally = ?6 WHERE id = ?1 AND fence <= ?3";
    let values = params![
        number(job.id.0),
        instant(job.moved_at),
        number(job.fence),
        job.failures,
        job.losses,
        job.failed_finally
    ];
    update_one(connection, sql, values, job.id)
}

fn move_on(connection: &Connection, job: &Job) -> Result<(), Fault> {
    let sql = "UPDATE jobs SET moved_at_ms = ?2, fence = ?3, failures = ?4, losses = ?5, \
               failed_finally = ?6, state = ?7 \
               WHERE id = ?1 AND fence <= ?3 AND live = 1";
    let values = params![
        number(job.id.0),
        instant(job.moved_at),
        number(job.fence),
        job.failures,
        job.losses,
        job.failed_finally,
        job.state.as_str()
    ];
    update_one(connection, sql, values, job.id)
}

fn requeue(connection: &Connection, job: &Job) -> Result<(), Fault> {
    let sql = "UPDATE jobs SET moved_at_ms = ?2, fence = ?3, failures = ?4, losses = ?5, \
               failed_finally = ?6, state = ?7, run_at_ms = ?8 \
               WHERE id = ?1 AND fence <= ?3 AND live = 1";
    let values = params![
        number(job.id.0),
        instant(job.moved_at),
        number(job.fence),
        job.failures,
        job.losses,
        job.failed_finally,
        job.state.as_str(),
        instant(job.run_at)
    ];
    update_one(connection, sql, values, job.id)
}

fn end_or_revive(connection: &Connection, job: &Job) -> Result<(), Fault> {
    let sql = "UPDATE jobs SET moved_at_ms = ?2, fence = ?3, failures = ?4, losses = ?5, \
               failed_finally = ?6, state = ?7, run_at_ms = ?8, live = ?9, completed_by = ?10, \
               completed_worker = ?11, completed_at_ms = ?12, manifest = ?13, dead_reason = ?14, \
               dead_message = ?15 WHERE id = ?1 AND fence <= ?3 AND state <> 'complete'";
    let completion = job.completion.as_ref();
    let dead = job.dead_letter.as_ref();
    let values = params![
        number(job.id.0),
        instant(job.moved_at),
        number(job.fence),
        job.failures,
        job.losses,
        job.failed_finally,
        job.state.as_str(),
        instant(job.run_at),
        job.state.is_live(),
        completion.map(|completion| number(completion.token)),
        completion.map(|completion| completion.worker.as_str()),
        completion.map(|completion| instant(completion.at)),
        completion.map(|completion| json(&completion.manifest)),
        dead.map(|dead| dead.reason.as_str()),
        dead.map(|dead| dead.message.as_str())
    ];
    update_one(connection, sql, values, job.id)
}
