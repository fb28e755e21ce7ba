//! The first answer to a request.

use palisade_core::RequestId;
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault},
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
) -> Result<(), Fault> {
    let sql = "INSERT INTO requests (scope, id, fingerprint, answer) VALUES (?1, ?2, ?3, ?4)";
    let values =
        params![scope_column(scope), id.as_str(), recorded.fingerprint.as_bytes(), recorded.answer];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}
