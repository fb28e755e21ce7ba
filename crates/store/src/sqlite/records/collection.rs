//! What is in the collector's hands, and what it looks for.

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    blob::{
        Blob,
        collect::{Case, Stage},
    },
};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    query::{Cases, Scan},
    sqlite::values::{Columns, fault, instant, int, number},
};

/// What was found in a stretch, and where the next one begins.
type Found<T> = (Vec<T>, Option<Number>);

fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Idle => "idle",
        Stage::Condemned => "condemned",
        Stage::Cleared => "cleared",
    }
}

fn run(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<usize, Fault> {
    connection.prepare_cached(sql).and_then(|mut sql| sql.execute(values)).map_err(fault)
}

fn exists(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<bool, Fault> {
    connection.prepare_cached(sql).and_then(|mut sql| sql.exists(values)).map_err(fault)
}

/// One generation's row.
pub(in crate::sqlite) fn generation(
    connection: &Connection,
    digest: Digest,
    generation: Number,
) -> Result<Option<Blob>, Fault> {
    let sql = "SELECT state, size_bytes FROM blobs WHERE generation = ?1 AND digest = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let values = params![number(generation), digest.as_bytes()];
    let mut rows = statement.query(values).map_err(fault)?;
    let Some(row) = rows.next().map_err(fault)? else { return Ok(None) };
    let columns = Columns::new("blob", row);
    let size: Option<i64> = columns.get(1)?;
    let size_bytes = size.map(|_| columns.unsigned(1)).transpose()?;
    Ok(Some(Blob { digest, generation, state: columns.word(0)?, size_bytes }))
}

/// Whether anything keeps a generation.
pub(in crate::sqlite) fn is_kept(
    connection: &Connection,
    generation: Number,
) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM keepers WHERE generation = ?1 LIMIT 1";
    exists(connection, sql, [number(generation)])
}

/// Drops one keeper of all generations of a digest: by their rows, for keepers that last have no
/// index of their own.
pub(in crate::sqlite) fn unkeep(
    connection: &Connection,
    digest: Digest,
    (kind, keeper): (&str, i64),
) -> Result<usize, Fault> {
    let sql = "DELETE FROM keepers WHERE kind = ?2 AND keeper = ?3 AND generation IN \
               (SELECT generation FROM blobs WHERE digest = ?1)";
    run(connection, sql, params![digest.as_bytes(), kind, keeper])
}

/// Drops the pins whose time is over.
pub(in crate::sqlite) fn drop_passed(
    connection: &Connection,
    now: Timestamp,
) -> Result<usize, Fault> {
    let sql = "DELETE FROM keepers WHERE kind = 'until' AND keeper <= ?1 \
               AND kind IN ('attempt', 'until', 'object')";
    run(connection, sql, [instant(now)])
}

fn decode(columns: &Columns<'_>) -> Result<Case, Fault> {
    Ok(Case {
        generation: columns.number(0)?,
        digest: columns.digest(1)?,
        stage: columns.word(2)?,
        since: columns.instant(3)?,
    })
}

fn select(
    connection: &Connection,
    rest: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<Case>, Fault> {
    let sql = format!("SELECT generation, digest, stage, since_ms FROM collection {rest}");
    let mut statement = connection.prepare_cached(&sql).map_err(fault)?;
    let mut rows = statement.query(values).map_err(fault)?;
    let mut cases = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        cases.push(decode(&Columns::new("collection", row))?);
    }
    Ok(cases)
}

/// A generation's case.
pub(in crate::sqlite) fn case(
    connection: &Connection,
    digest: Digest,
    generation: Number,
) -> Result<Option<Case>, Fault> {
    let rest = "WHERE generation = ?1 AND digest = ?2";
    Ok(select(connection, rest, params![number(generation), digest.as_bytes()])?.pop())
}

/// Cases of one stage, the oldest first.
pub(in crate::sqlite) fn cases(connection: &Connection, asked: &Cases) -> Result<Vec<Case>, Fault> {
    let rest = "WHERE stage = ?1 AND since_ms <= ?2 ORDER BY since_ms, generation LIMIT ?3";
    let limit = i64::try_from(asked.limit).unwrap_or(i64::MAX);
    select(connection, rest, params![stage_word(asked.stage), instant(asked.until), limit])
}

/// Writes a case, new or moved on.
pub(in crate::sqlite) fn put(connection: &Connection, case: &Case) -> Result<(), Fault> {
    let sql = "INSERT INTO collection (generation, digest, stage, since_ms) \
               VALUES (?1, ?2, ?3, ?4) ON CONFLICT (generation) DO UPDATE \
               SET stage = excluded.stage, since_ms = excluded.since_ms";
    let since = instant(case.since);
    let generation = number(case.generation);
    let values = params![generation, case.digest.as_bytes(), stage_word(case.stage), since];
    run(connection, sql, values).map(drop)
}

/// Closes a case.
pub(in crate::sqlite) fn drop_case(
    connection: &Connection,
    generation: Number,
) -> Result<usize, Fault> {
    run(connection, "DELETE FROM collection WHERE generation = ?1", [number(generation)])
}

/// Forgets a generation, and its case.
pub(in crate::sqlite) fn forget(connection: &Connection, generation: Number) -> Result<(), Fault> {
    drop_case(connection, generation)?;
    run(connection, "DELETE FROM blobs WHERE generation = ?1", [number(generation)]).map(drop)
}

/// Whether a job was released.
pub(in crate::sqlite) fn is_released(connection: &Connection, job: JobId) -> Result<bool, Fault> {
    exists(connection, "SELECT 1 FROM released_jobs WHERE job = ?1", [number(job.0)])
}

/// Says that a job is released, or that it is not.
pub(in crate::sqlite) fn set_released(
    connection: &Connection,
    job: JobId,
    released: bool,
) -> Result<(), Fault> {
    let sql = if released {
        "INSERT INTO released_jobs (job) VALUES (?1) ON CONFLICT DO NOTHING"
    } else {
        "DELETE FROM released_jobs WHERE job = ?1"
    };
    run(connection, sql, [number(job.0)]).map(drop)
}

/// Generations of one stretch that nothing keeps, or that are noted as such; and where the next
/// stretch begins.
pub(in crate::sqlite) fn unkept(
    connection: &Connection,
    scan: &Scan,
) -> Result<Found<(Digest, Number)>, Fault> {
    let sql = "SELECT generation, digest FROM \
               (SELECT generation, digest, state FROM blobs WHERE generation > ?1 \
                ORDER BY generation LIMIT ?2) AS stretch \
               WHERE state <> 'condemned' AND \
               (NOT EXISTS (SELECT 1 FROM keepers WHERE keepers.generation = stretch.generation) \
                OR EXISTS (SELECT 1 FROM collection \
                           WHERE collection.generation = stretch.generation)) \
               ORDER BY generation";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query(params![number(scan.after), limit(scan)]).map_err(fault)?;
    let mut blobs = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let columns = Columns::new("blob", row);
        blobs.push((columns.digest(1)?, columns.number(0)?));
    }
    let end = "SELECT generation FROM blobs WHERE generation > ?1 ORDER BY generation \
               LIMIT 1 OFFSET ?2 - 1";
    Ok((blobs, end_of(connection, end, scan)?))
}

/// Jobs of one stretch that moved last at `until` or before, are over and not released; and where
/// the next stretch begins.
pub(in crate::sqlite) fn past_jobs(
    connection: &Connection,
    scan: &Scan,
    until: Timestamp,
) -> Result<Found<JobId>, Fault> {
    let sql = "SELECT id FROM (SELECT id, live, moved_at_ms FROM jobs WHERE id > ?1 \
               ORDER BY id LIMIT ?2) WHERE live = 0 AND moved_at_ms <= ?3 \
               AND id NOT IN (SELECT job FROM released_jobs) ORDER BY id";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let values = params![number(scan.after), limit(scan), instant(until)];
    let mut rows = statement.query(values).map_err(fault)?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        jobs.push(Columns::new("job", row).job(0)?);
    }
    let end = "SELECT id FROM jobs WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2 - 1";
    Ok((jobs, end_of(connection, end, scan)?))
}

fn limit(scan: &Scan) -> i64 {
    int(scan.length.max(1) as u64)
}

/// The last of a stretch, if it was a full one: there may be more after it.
fn end_of(connection: &Connection, sql: &str, scan: &Scan) -> Result<Option<Number>, Fault> {
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query(params![number(scan.after), limit(scan)]).map_err(fault)?;
    match rows.next().map_err(fault)? {
        None => Ok(None),
        Some(row) => Columns::new("stretch", row).number(0).map(Some),
    }
}
