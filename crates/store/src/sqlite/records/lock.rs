//! A lock's row, and its grants'.

use palisade_core::{
    LockName, Number, RequestId, Timestamp,
    lease::Pair,
    lock::{Lock, LockClose, LockGrant},
};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    query::Page,
    sqlite::values::{Columns, fault, instant, int, json, number},
};

const COLUMNS: &str = "fence, name, holding";

fn decode(columns: &Columns<'_>) -> Result<Lock, Fault> {
    let held = columns.optional_text(2)?.is_some();
    Ok(Lock {
        name: columns.parsed(1)?,
        fence: columns.number(0)?,
        holding: if held { Some(columns.json(2)?) } else { None },
        waiters: Vec::new(),
    })
}

/// Locks as the disk has them: nobody waits.
fn select(
    connection: &Connection,
    rest: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<Lock>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM locks {rest}");
    let mut statement = connection.prepare_cached(&sql).map_err(fault)?;
    let mut rows = statement.query(values).map_err(fault)?;
    let mut locks = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        locks.push(decode(&Columns::new("lock", row))?);
    }
    Ok(locks)
}

/// One lock.
pub(in crate::sqlite) fn read(
    connection: &Connection,
    name: &LockName,
) -> Result<Option<Lock>, Fault> {
    Ok(select(connection, "WHERE name = ?1", [name.as_str()])?.pop())
}

/// All that are held: what a start has to know.
pub(in crate::sqlite) fn held(connection: &Connection) -> Result<Vec<Lock>, Fault> {
    select(connection, "WHERE token IS NOT NULL", [])
}

/// A page of them, by name.
pub(in crate::sqlite) fn list(connection: &Connection, page: &Page) -> Result<Vec<Lock>, Fault> {
    let (from, after, limit) = page_values(page);
    let rest = "WHERE name >= ?1 AND name > ?2 AND name < ?1 || char(127) \
                ORDER BY name LIMIT ?3";
    select(connection, rest, params![from, after, limit])
}

/// A page's prefix, the name before its first, and its length.
pub(super) fn page_values(page: &Page) -> (&str, &str, i64) {
    let after = page.after.as_deref().unwrap_or_default();
    (&page.prefix, after, i64::try_from(page.limit).unwrap_or(i64::MAX))
}

/// Writes a lock's row, new or changed.
pub(in crate::sqlite) fn write(connection: &Connection, lock: &Lock) -> Result<(), Fault> {
    let sql = "INSERT INTO locks (name, fence, token, holding) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, token = excluded.token, \
               holding = excluded.holding";
    let token = lock.holding.as_ref().map(|held| number(held.token));
    let holding = lock.holding.as_ref().map(json);
    let values = params![lock.name.as_str(), number(lock.fence), token, holding];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}

const GRANT_COLUMNS: &str = "token, lock, lease_id, holder, request_id, closed_at_ms, close_reason";

/// The grant that has a token.
pub(in crate::sqlite) fn read_grant(
    connection: &Connection,
    token: Number,
) -> Result<Option<LockGrant>, Fault> {
    Ok(select_grants(connection, "WHERE token = ?1", [number(token)])?.pop())
}

/// Grants above a token, by rising token.
pub(in crate::sqlite) fn grants_after(
    connection: &Connection,
    after: Number,
    limit: usize,
) -> Result<Vec<LockGrant>, Fault> {
    let rest = "WHERE token > ?1 ORDER BY token LIMIT ?2";
    select_grants(connection, rest, [number(after), int(limit as u64)])
}

fn select_grants(
    connection: &Connection,
    rest: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<LockGrant>, Fault> {
    let sql = format!("SELECT {GRANT_COLUMNS} FROM lock_grants {rest}");
    let mut statement = connection.prepare_cached(&sql).map_err(fault)?;
    let mut rows = statement.query(values).map_err(fault)?;
    let mut grants = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        grants.push(decode_grant(&Columns::new("grant", row))?);
    }
    Ok(grants)
}

fn decode_grant(columns: &Columns<'_>) -> Result<LockGrant, Fault> {
    let closed = match columns.optional_instant(5)? {
        None => None,
        Some(at) => Some((at, columns.word::<LockClose>(6)?)),
    };
    Ok(LockGrant {
        name: columns.parsed(1)?,
        pair: Pair { token: columns.number(0)?, lease_id: columns.lease_id(2)? },
        holder: columns.parsed(3)?,
        request_id: columns.parsed(4)?,
        closed,
    })
}

/// The newest grant of a lock that a request was given.
pub(in crate::sqlite) fn read_grant_of(
    connection: &Connection,
    name: &LockName,
    request: &RequestId,
) -> Result<Option<LockGrant>, Fault> {
    let rest = "WHERE request_id = ?1 AND lock = ?2 ORDER BY token DESC LIMIT 1";
    Ok(select_grants(connection, rest, params![request.as_str(), name.as_str()])?.pop())
}

/// Forgets grants that ended before an instant. Answers whether there were any.
pub(in crate::sqlite) fn forget_grants(
    connection: &Connection,
    ended_before: Timestamp,
    limit: usize,
) -> Result<bool, Fault> {
    let sql = "DELETE FROM lock_grants WHERE token IN (SELECT token FROM lock_grants \
               WHERE closed_at_ms < ?1 ORDER BY closed_at_ms, token LIMIT ?2)";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let count = statement.execute(params![instant(ended_before), limit]).map_err(fault)?;
    Ok(count > 0)
}

/// Writes a grant, new or ended.
pub(in crate::sqlite) fn write_grant(
    connection: &Connection,
    grant: &LockGrant,
) -> Result<(), Fault> {
    let sql = "INSERT INTO lock_grants (token, lock, lease_id, holder, request_id, closed_at_ms, \
               close_reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (token) DO UPDATE \
               SET closed_at_ms = excluded.closed_at_ms, close_reason = excluded.close_reason";
    let (closed_at, how) = grant.closed.unzip();
    let values = params![
        number(grant.pair.token),
        grant.name.as_str(),
        grant.pair.lease_id.0.to_be_bytes(),
        grant.holder.as_str(),
        grant.request_id.as_str(),
        closed_at.map(instant),
        how.map(LockClose::as_str)
    ];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}
