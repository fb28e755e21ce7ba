//! An attempt's row.

use palisade_core::{
    JobId,
    job::{Attempt, Closed, Failure, FailureKind, Requeued},
    lease::Lease,
};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, instant, int, number, update_one},
};

/// All attempts of a job, by rising token, with their leases as they are on disk.
pub(in crate::sqlite) fn read_all(
    connection: &Connection,
    job: JobId,
) -> Result<Vec<Attempt>, Fault> {
    let sql = "SELECT token, lease_id, worker, session, claim, claim_seq, granted_at_ms, backup, \
               ttl_ms, deadline_ms, renewed_at_ms, life, closed_at_ms, close_reason, \
               failure_reason, failure_message, failure_kind, requeued_state, requeued_at_ms \
               FROM attempts WHERE job = ?1 ORDER BY token";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([number(job.0)]).map_err(fault)?;
    let mut attempts = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        attempts.push(decode(&Columns::new("attempt", row))?);
    }
    Ok(attempts)
}

fn decode(columns: &Columns<'_>) -> Result<Attempt, Fault> {
    Ok(Attempt {
        token: columns.number(0)?,
        lease_id: columns.lease_id(1)?,
        worker: columns.parsed(2)?,
        session: columns.parsed(3)?,
        claim: columns.parsed(4)?,
        claim_seq: columns.unsigned(5)?,
        granted_at: columns.instant(6)?,
        backup: columns.get(7)?,
        lease: Lease {
            ttl_ms: columns.unsigned(8)?,
            deadline: columns.instant(9)?,
            renewed_at: columns.instant(10)?,
            life: columns.unsigned(11)?,
        },
        closed: decode_closed(columns)?,
    })
}

fn decode_closed(columns: &Columns<'_>) -> Result<Option<Closed>, Fault> {
    let Some(at) = columns.optional_instant(12)? else { return Ok(None) };
    let failure = match columns.optional_text(14)? {
        None => None,
        Some(reason) => Some(Failure {
            reason: reason.to_owned(),
            message: columns.get(15)?,
            kind: columns.word(16)?,
        }),
    };
    let requeued = match columns.optional_text(17)? {
        None => None,
        Some(_) => {
            Some(Requeued { state: columns.parsed(17)?, run_at: columns.optional_instant(18)? })
        }
    };
    Ok(Some(Closed { at, reason: columns.word(13)?, failure, requeued }))
}

/// Writes what changed. `before` and `after` are in rising order; none is ever taken away.
pub(in crate::sqlite) fn write_changes(
    connection: &Connection,
    job: JobId,
    before: &[Attempt],
    after: &[Attempt],
) -> Result<(), Fault> {
    for (index, attempt) in after.iter().enumerate() {
        match before.get(index) {
            None => insert(connection, job, attempt)?,
            Some(before) if before == attempt => {}
            Some(_) if attempt.closed.is_some() => close(connection, job, attempt)?,
            Some(_) => renew(connection, job, attempt)?,
        }
    }
    Ok(())
}

fn insert(connection: &Connection, job: JobId, attempt: &Attempt) -> Result<(), Fault> {
    let sql = "INSERT INTO attempts (job, token, lease_id, worker, session, claim, claim_seq, \
               granted_at_ms, backup, ttl_ms, deadline_ms, renewed_at_ms, life) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let values = params![
        number(job.0),
        number(attempt.token),
        attempt.lease_id.0.to_be_bytes(),
        attempt.worker.as_str(),
        attempt.session.as_str(),
        attempt.claim.as_str(),
        int(attempt.claim_seq),
        instant(attempt.granted_at),
        attempt.backup,
        int(attempt.lease.ttl_ms),
        instant(attempt.lease.deadline),
        instant(attempt.lease.renewed_at),
        int(attempt.lease.life)
    ];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)?;
    // Whoever writes an attempt that is closed already has read it somewhere else.
    if attempt.closed.is_some() { close(connection, job, attempt) } else { Ok(()) }
}

/// The lease as last renewed goes with it: from now on nobody remembers it in memory.
fn close(connection: &Connection, job: JobId, attempt: &Attempt) -> Result<(), Fault> {
    let sql = "UPDATE attempts SET deadline_ms = ?3, renewed_at_ms = ?4, life = ?5, \
               closed_at_ms = ?6, close_reason = ?7, failure_reason = ?8, failure_message = ?9, \
               failure_kind = ?10, requeued_state = ?11, requeued_at_ms = ?12 \
               WHERE job = ?1 AND token = ?2 AND closed_at_ms IS NULL";
    let closed = attempt.closed.as_ref().expect("the caller found it closed");
    let failure = closed.failure.as_ref();
    let values = params![
        number(job.0),
        number(attempt.token),
        instant(attempt.lease.deadline),
        instant(attempt.lease.renewed_at),
        int(attempt.lease.life),
        instant(closed.at),
        closed.reason.as_str(),
        failure.map(|failure| failure.reason.as_str()),
        failure.map(|failure| failure.message.as_str()),
        failure.map(|failure| kind_word(failure.kind)),
        closed.requeued.map(|requeued| requeued.state.as_str()),
        closed.requeued.and_then(|requeued| requeued.run_at).map(instant)
    ];
    update_one(connection, sql, values, format_args!("attempt {} of {job}", attempt.token))
}

fn renew(connection: &Connection, job: JobId, attempt: &Attempt) -> Result<(), Fault> {
    write_lease(connection, job, attempt.token, attempt.lease)
}

/// Writes an open attempt's lease.
pub(in crate::sqlite) fn write_lease(
    connection: &Connection,
    job: JobId,
    token: palisade_core::Number,
    lease: Lease,
) -> Result<(), Fault> {
    let sql = "UPDATE attempts SET deadline_ms = ?3, renewed_at_ms = ?4, life = ?5 \
               WHERE job = ?1 AND token = ?2 AND closed_at_ms IS NULL";
    let values = params![
        number(job.0),
        number(token),
        instant(lease.deadline),
        instant(lease.renewed_at),
        int(lease.life)
    ];
    update_one(connection, sql, values, format_args!("attempt {token} of {job}"))
}

fn kind_word(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Retryable => "retryable",
        FailureKind::Final => "final",
    }
}
