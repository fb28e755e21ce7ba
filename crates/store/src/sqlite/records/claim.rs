//! What a claim was granted: one row a claim, however many jobs it got.

use palisade_core::{JobId, Number, RequestId, SessionId, Timestamp};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, instant, int, json},
    tables::OldClaim,
};

/// The jobs granted to a claim, with their tokens, by rising token.
pub(in crate::sqlite) type Grants = Vec<(JobId, Number)>;

pub(in crate::sqlite) fn read(
    connection: &Connection,
    session: &SessionId,
    claim: &RequestId,
) -> Result<Grants, Fault> {
    let sql = "SELECT grants FROM claims WHERE session = ?1 AND claim = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query(params![session.as_str(), claim.as_str()]).map_err(fault)?;
    match rows.next().map_err(fault)? {
        None => Ok(Vec::new()),
        Some(row) => Columns::new("claim", row).json(0),
    }
}

pub(in crate::sqlite) fn write(
    connection: &Connection,
    session: &SessionId,
    claim: &RequestId,
    grants: &Grants,
    at: Timestamp,
) -> Result<(), Fault> {
    let sql = "INSERT INTO claims (session, claim, grants, at_ms) VALUES (?1, ?2, ?3, ?4)";
    let values = params![session.as_str(), claim.as_str(), json(grants), instant(at)];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}

/// Claims answered before an instant, oldest first.
pub(in crate::sqlite) fn older(
    connection: &Connection,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<OldClaim>, Fault> {
    let sql = "SELECT session, claim, grants FROM claims WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([instant(before), int(limit as u64)]).map_err(fault)?;
    let mut claims = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let columns = Columns::new("claim", row);
        claims.push(OldClaim {
            session: columns.parsed(0)?,
            claim: columns.parsed(1)?,
            grants: columns.json(2)?,
        });
    }
    Ok(claims)
}

/// Forgets what a claim was granted.
pub(in crate::sqlite) fn delete(
    connection: &Connection,
    session: &SessionId,
    claim: &RequestId,
) -> Result<(), Fault> {
    let sql = "DELETE FROM claims WHERE session = ?1 AND claim = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute([session.as_str(), claim.as_str()]).map(drop).map_err(fault)
}
