//! The journal, packed: the entries of one transaction share rows.

use std::collections::BTreeSet;

use palisade_core::{JobId, history::Event};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, instant, int, json, number},
    tables::Chunk,
};

/// Most entries of one row, so that reading one job's does not cost reading too much of others'.
const ENTRIES_MAX: usize = 100;

/// Entries with their positions.
pub(in crate::sqlite) type Entries = Vec<(u64, Event)>;

/// Appends entries from a position on.
pub(in crate::sqlite) fn append(
    connection: &Connection,
    mut first: u64,
    events: &[Event],
) -> Result<(), Fault> {
    let row = "INSERT INTO journal (first, count, events, at_ms) VALUES (?1, ?2, ?3, ?4)";
    let by_job = "INSERT INTO journal_jobs (job, first) VALUES (?1, ?2)";
    for chunk in events.chunks(ENTRIES_MAX) {
        let count = chunk.len() as u64;
        let mut statement = connection.prepare_cached(row).map_err(fault)?;
        let newest = chunk.iter().map(|event| event.at).max().unwrap_or_default();
        let values = params![int(first), int(count), json(&chunk), instant(newest)];
        statement.execute(values).map_err(fault)?;
        let jobs: BTreeSet<_> = chunk.iter().filter_map(Event::job).collect();
        let mut statement = connection.prepare_cached(by_job).map_err(fault)?;
        for job in jobs {
            statement.execute(params![number(job.0), int(first)]).map_err(fault)?;
        }
        first += count;
    }
    Ok(())
}

/// Rows that begin after a position, oldest first.
pub(in crate::sqlite) fn chunks_after(
    connection: &Connection,
    position: u64,
    limit: usize,
) -> Result<Vec<Chunk>, Fault> {
    let sql = "SELECT first, events, count, at_ms FROM journal WHERE first > ?1 \
               ORDER BY first LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([int(position), int(limit as u64)]).map_err(fault)?;
    let mut chunks = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let columns = Columns::new("journal", row);
        let entries = unpack(&columns)?;
        chunks.push(Chunk {
            first: columns.unsigned(0)?,
            count: columns.unsigned(2)?,
            newest: columns.instant(3)?,
            jobs: entries.iter().filter_map(|(_, event)| event.job()).collect(),
        });
    }
    Ok(chunks)
}

/// Forgets a row.
pub(in crate::sqlite) fn drop_chunk(connection: &Connection, chunk: &Chunk) -> Result<(), Fault> {
    let by_job = "DELETE FROM journal_jobs WHERE job = ?1 AND first = ?2";
    let mut statement = connection.prepare_cached(by_job).map_err(fault)?;
    for job in &chunk.jobs {
        statement.execute([number(job.0), int(chunk.first)]).map_err(fault)?;
    }
    let mut statement =
        connection.prepare_cached("DELETE FROM journal WHERE first = ?1").map_err(fault)?;
    statement.execute([int(chunk.first)]).map(drop).map_err(fault)
}

/// One job's entries, oldest first.
pub(in crate::sqlite) fn of_job(connection: &Connection, job: JobId) -> Result<Entries, Fault> {
    let sql = "SELECT journal.first, events FROM journal_jobs JOIN journal USING (first) \
               WHERE job = ?1 ORDER BY journal.first";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([number(job.0)]).map_err(fault)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let unpacked = unpack(&Columns::new("journal", row))?;
        entries.extend(unpacked.into_iter().filter(|(_, event)| event.job() == Some(job)));
    }
    Ok(entries)
}

/// Entries after a position, oldest first, at most `limit`.
pub(in crate::sqlite) fn after(
    connection: &Connection,
    position: u64,
    limit: usize,
) -> Result<Entries, Fault> {
    // The row that holds the next position begins at or before it.
    let sql = "SELECT first, events FROM journal WHERE first >= coalesce(( \
               SELECT max(first) FROM journal WHERE first <= ?1), 1) ORDER BY first";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([int(position.saturating_add(1))]).map_err(fault)?;
    let mut entries = Vec::new();
    while entries.len() < limit
        && let Some(row) = rows.next().map_err(fault)?
    {
        let unpacked = unpack(&Columns::new("journal", row))?;
        entries.extend(unpacked.into_iter().filter(|(at, _)| *at > position));
    }
    entries.truncate(limit);
    Ok(entries)
}

fn unpack(columns: &Columns<'_>) -> Result<Entries, Fault> {
    let first = columns.unsigned(0)?;
    let events: Vec<Event> = columns.json(1)?;
    Ok((first..).zip(events).collect())
}
