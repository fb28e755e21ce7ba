//! Rows of the outbox, and its endpoints'.

use palisade_core::{
    Number, Timestamp,
    outbox::{Delivery, Endpoint, EndpointId, LastTry, Notice, Standing},
};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    query::DeliveryFilter,
    sqlite::values::{Columns, fault, instant, int, json, number},
};

const COLUMNS: &str = "number, endpoint, job, submission, event, token, seq, at_ms, body, \
                       standing, lease_id, due_at_ms, tries, queued_at_ms, last";
const OPEN: &str = "standing IN ('pending', 'leased')";

fn decode(columns: &Columns<'_>) -> Result<Delivery, Fault> {
    let token: Option<i64> = columns.get(5)?;
    let last = columns.optional_text(14)?.is_some();
    let standing = match columns.text(9)? {
        "pending" => Standing::Pending,
        "leased" => Standing::Leased(columns.lease_id(10)?),
        "delivered" => Standing::Delivered,
        "dead" => Standing::Dead,
        other => return Err(columns.corrupt(9, format!("no standing is called {other:?}"))),
    };
    Ok(Delivery {
        number: columns.number(0)?,
        endpoint: columns.parsed(1)?,
        notice: Notice {
            event: columns.parsed(4)?,
            job: columns.job(2)?,
            submission: columns.number(3)?,
            token: token.map(|_| columns.number(5)).transpose()?,
            seq: columns.number(6)?,
            at: columns.instant(7)?,
            body: columns.text(8)?.to_owned(),
        },
        standing,
        due_at: columns.instant(11)?,
        tries: columns.small(12)?,
        queued_at: columns.instant(13)?,
        last: if last { Some(columns.json::<LastTry>(14)?) } else { None },
    })
}

fn select(
    connection: &Connection,
    rest: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<Delivery>, Fault> {
    run(connection, &format!("SELECT {COLUMNS} FROM outbox {rest}"), values)
}

fn run(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<Delivery>, Fault> {
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query(values).map_err(fault)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        found.push(decode(&Columns::new("notification", row))?);
    }
    Ok(found)
}

/// One row.
pub(in crate::sqlite) fn read(
    connection: &Connection,
    at: Number,
) -> Result<Option<Delivery>, Fault> {
    Ok(select(connection, "WHERE number = ?1", [number(at)])?.pop())
}

/// All after a number, by rising number.
pub(in crate::sqlite) fn after(
    connection: &Connection,
    last: Number,
    limit: usize,
) -> Result<Vec<Delivery>, Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    select(connection, "WHERE number > ?1 ORDER BY number LIMIT ?2", params![number(last), limit])
}

/// A page of an endpoint's, newest first.
pub(in crate::sqlite) fn list(
    connection: &Connection,
    filter: &DeliveryFilter,
) -> Result<Vec<Delivery>, Fault> {
    let before = filter.before.map_or(i64::MAX, number);
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let rest = "WHERE endpoint = ?1 AND number < ?2 AND (?3 IS NULL OR standing = ?3) \
                ORDER BY number DESC LIMIT ?4";
    select(connection, rest, params![filter.endpoint.to_string(), before, filter.standing, limit])
}

/// Finds what [`due`] answers.
pub(in crate::sqlite) fn due_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM outbox AS one WHERE {OPEN} AND endpoint = ?1 AND due_at_ms <= ?2 \
         AND NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.endpoint = one.endpoint \
         AND earlier.job = one.job AND earlier.number < one.number AND earlier.{OPEN}) \
         ORDER BY due_at_ms, number LIMIT ?3"
    )
}

/// Finds what [`next`] answers.
pub(in crate::sqlite) fn next_sql() -> String {
    format!("SELECT min(due_at_ms) FROM outbox WHERE {OPEN} AND due_at_ms > ?1")
}

/// An endpoint's that are due, each the first of its job among those open.
pub(in crate::sqlite) fn due(
    connection: &Connection,
    endpoint: EndpointId,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Delivery>, Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    run(connection, &due_sql(), params![endpoint.to_string(), instant(now), limit])
}

/// How many of an endpoint's are leased within their deadline.
pub(in crate::sqlite) fn busy(
    connection: &Connection,
    endpoint: EndpointId,
    now: Timestamp,
) -> Result<usize, Fault> {
    let sql = "SELECT count(*) FROM outbox WHERE standing = 'leased' AND endpoint = ?1 \
               AND due_at_ms > ?2";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    let count = statement.query_row(params![endpoint.to_string(), instant(now)], count);
    Ok(usize::try_from(count.map_err(fault)?).unwrap_or(usize::MAX))
}

/// When the next one becomes due.
pub(in crate::sqlite) fn next(
    connection: &Connection,
    now: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    let mut statement = connection.prepare_cached(&next_sql()).map_err(fault)?;
    let mut rows = statement.query([instant(now)]).map_err(fault)?;
    match rows.next().map_err(fault)? {
        None => Ok(None),
        Some(row) => Columns::new("notification", row).optional_instant(0),
    }
}

/// Writes a row, new or changed. What it tells is written once.
pub(in crate::sqlite) fn write(connection: &Connection, row: &Delivery) -> Result<(), Fault> {
    let sql = "INSERT INTO outbox (number, endpoint, job, submission, event, token, seq, at_ms, \
               body, standing, lease_id, due_at_ms, tries, queued_at_ms, last) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) \
               ON CONFLICT (number) DO UPDATE SET standing = excluded.standing, \
               lease_id = excluded.lease_id, due_at_ms = excluded.due_at_ms, \
               tries = excluded.tries, queued_at_ms = excluded.queued_at_ms, last = excluded.last";
    let lease_id = match row.standing {
        Standing::Leased(lease_id) => Some(lease_id.0.to_be_bytes()),
        Standing::Pending | Standing::Delivered | Standing::Dead => None,
    };
    let notice = &row.notice;
    let values = params![
        number(row.number),
        row.endpoint.to_string(),
        number(notice.job.0),
        number(notice.submission),
        notice.event.as_str(),
        notice.token.map(number),
        number(notice.seq),
        instant(notice.at),
        notice.body,
        row.standing.as_str(),
        lease_id,
        instant(row.due_at),
        int(u64::from(row.tries)),
        instant(row.queued_at),
        row.last.as_ref().map(json)
    ];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}

/// All endpoints, by id.
pub(in crate::sqlite) fn endpoints(connection: &Connection) -> Result<Vec<Endpoint>, Fault> {
    let sql = "SELECT endpoint FROM endpoints ORDER BY id";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([]).map_err(fault)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        found.push(Columns::new("endpoint", row).json(0)?);
    }
    Ok(found)
}

/// Writes an endpoint, new or changed.
pub(in crate::sqlite) fn write_endpoint(
    connection: &Connection,
    endpoint: &Endpoint,
) -> Result<(), Fault> {
    let sql = "INSERT INTO endpoints (id, tenant, url, endpoint) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (id) DO UPDATE SET endpoint = excluded.endpoint";
    let values =
        params![endpoint.id.to_string(), endpoint.tenant.as_str(), endpoint.url, json(endpoint)];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}

/// Drops an endpoint and its rows.
pub(in crate::sqlite) fn drop_endpoint(
    connection: &Connection,
    id: EndpointId,
) -> Result<(), Fault> {
    for sql in ["DELETE FROM outbox WHERE endpoint = ?1", "DELETE FROM endpoints WHERE id = ?1"] {
        let mut statement = connection.prepare_cached(sql).map_err(fault)?;
        statement.execute([id.to_string()]).map_err(fault)?;
    }
    Ok(())
}
