//! The list of publications that are due.

use palisade_core::{JobId, Number};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, number},
};

/// Those due, by rising number.
pub(in crate::sqlite) fn due(
    connection: &Connection,
    limit: usize,
) -> Result<Vec<(Number, JobId)>, Fault> {
    let sql = "SELECT submission, job FROM publications_due ORDER BY submission LIMIT ?1";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([limit]).map_err(fault)?;
    let mut due = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let columns = Columns::new("publication due", row);
        due.push((columns.number(0)?, columns.job(1)?));
    }
    Ok(due)
}

/// Notes one that is due. Repeated, it stands once.
pub(in crate::sqlite) fn put(
    connection: &Connection,
    submission: Number,
    job: JobId,
) -> Result<(), Fault> {
    let sql = "INSERT INTO publications_due (submission, job) VALUES (?1, ?2) \
               ON CONFLICT DO NOTHING";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(params![number(submission), number(job.0)]).map(drop).map_err(fault)
}

/// Takes one off the list.
pub(in crate::sqlite) fn drop_due(
    connection: &Connection,
    submission: Number,
) -> Result<(), Fault> {
    let sql = "DELETE FROM publications_due WHERE submission = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute([number(submission)]).map(drop).map_err(fault)
}
