//! The first answer to a request.

use palisade_core::{RequestId, Timestamp};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, instant, int},
    tables::{Recorded, Scope},
};

fn scope_column(scope: &Scope) -> String {
    match scope {
        Scope::Tenant(tenant) => format!("tenant/{tenant}"),
        Scope::Job(job) => format!("job/{job}"),
    }
}

pub(in crate::sqlite) fn read(
    connection: &Connection,
    scope: &Scope,
    id: &RequestId,
) -> Result<Option<Recorded>, Fault> {
    let sql = "SELECT fingerprint, answer FROM requests WHERE scope = ?1 AND id = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query(params![scope_column(scope), id.as_str()]).map_err(fault)?;
    let Some(row) = rows.next().map_err(fault)? else { return Ok(None) };
    let columns = Columns::new("request", row);
    Ok(Some(Recorded { fingerprint: columns.digest(0)?, answer: columns.get(1)? }))
}

pub(in crate::sqlite) fn write(
    connection: &Connection,
    scope: &Scope,
    id: &RequestId,
    recorded: &Recorded,
    at: Timestamp,
) -> Result<(), Fault> {
    let sql = "INSERT INTO requests (scope, id, fingerprint, answer, at_ms) \
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let fingerprint = recorded.fingerprint.as_bytes();
    let values =
        params![scope_column(scope), id.as_str(), fingerprint, recorded.answer, instant(at)];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}

/// Forgets answers given before an instant, oldest first. Answers how many.
pub(in crate::sqlite) fn forget(
    connection: &Connection,
    before: Timestamp,
    limit: usize,
) -> Result<usize, Fault> {
    let sql = "DELETE FROM requests WHERE (scope, id) IN \
               (SELECT scope, id FROM requests WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute([instant(before), int(limit as u64)]).map_err(fault)
}
