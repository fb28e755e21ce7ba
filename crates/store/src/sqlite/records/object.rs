//! A fenced object's row.

use palisade_core::{JobId, Number, ObjectKey, object::Object};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    query::Page,
    sqlite::values::{Columns, fault, json, number},
};

use super::lock::page_values;

const COLUMNS: &str = "fence, key, kind, last, content";

fn decode(columns: &Columns<'_>) -> Result<Object, Fault> {
    let readable = columns.optional_text(4)?.is_some();
    Ok(Object {
        key: columns.parsed(1)?,
        kind: columns.word(2)?,
        fence: columns.number(0)?,
        last: columns.json(3)?,
        content: if readable { Some(columns.json(4)?) } else { None },
    })
}

fn select(
    connection: &Connection,
    rest: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<Object>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM objects {rest}");
    let mut statement = connection.prepare_cached(&sql).map_err(fault)?;
    let mut rows = statement.query(values).map_err(fault)?;
    let mut objects = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        objects.push(decode(&Columns::new("object", row))?);
    }
    Ok(objects)
}

/// One object, a deleted one too.
pub(in crate::sqlite) fn read(
    connection: &Connection,
    key: &ObjectKey,
) -> Result<Option<Object>, Fault> {
    Ok(select(connection, "WHERE key = ?1", [key.as_str()])?.pop())
}

/// A page of those that can be read, by key.
pub(in crate::sqlite) fn list(connection: &Connection, page: &Page) -> Result<Vec<Object>, Fault> {
    let (from, after, limit) = page_values(page);
    let rest = "WHERE key >= ?1 AND key > ?2 AND key < ?1 || char(127) \
                AND readable = 1 ORDER BY key LIMIT ?3";
    select(connection, rest, params![from, after, limit])
}

/// A page of all of them, tombstones too, by key.
pub(in crate::sqlite) fn list_all(
    connection: &Connection,
    page: &Page,
) -> Result<Vec<Object>, Fault> {
    let (_, after, limit) = page_values(page);
    select(connection, "WHERE key > ?1 ORDER BY key LIMIT ?2", params![after, limit])
}

/// Writes an object's row, new or changed.
pub(in crate::sqlite) fn write(connection: &Connection, object: &Object) -> Result<(), Fault> {
    let sql = "INSERT INTO objects (key, kind, fence, readable, last, content) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (key) DO UPDATE \
               SET kind = excluded.kind, fence = excluded.fence, readable = excluded.readable, \
               last = excluded.last, content = excluded.content";
    let values = params![
        object.key.as_str(),
        object.kind.as_str(),
        number(object.fence),
        object.is_readable(),
        json(&object.last),
        object.content.as_ref().map(json)
    ];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}

/// The job of which an attempt has this token.
pub(in crate::sqlite) fn job_of_token(
    connection: &Connection,
    token: Number,
) -> Result<Option<JobId>, Fault> {
    let sql = "SELECT job FROM attempts WHERE token = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([number(token)]).map_err(fault)?;
    match rows.next().map_err(fault)? {
        None => Ok(None),
        Some(row) => Columns::new("attempt", row).job(0).map(Some),
    }
}
