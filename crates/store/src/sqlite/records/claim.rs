//! What a claim was granted: one row a claim, however many jobs it got.

use palisade_core::{JobId, Number, RequestId, SessionId};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, json},
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
) -> Result<(), Fault> {
    let sql = "INSERT INTO claims (session, claim, grants) VALUES (?1, ?2, ?3)";
    let values = params![session.as_str(), claim.as_str(), json(grants)];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}
