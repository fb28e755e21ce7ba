//! The journal, packed: the entries of one transaction share rows.
//!
//! A position is given by the order of commits, and readers never see a gap: the row `head` is
//! changed last of all in a transaction, and its lock is held until the commit. So whoever gets a
//! later position has waited for the commit of the earlier one. The statement that takes the lock
//! and the commit are sent together: no server can hold it while it is stopped.

use std::collections::BTreeSet;

use deadpool_postgres::Client;
use palisade_core::{history::Event, job::JobState};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::{Columns, count, int, json, number},
    },
    tables::Chunk,
};

/// Most entries of one row, so that reading one job's does not cost reading too much of others'.
const ENTRIES_MAX: usize = 100;

/// Entries with their positions.
pub(in crate::postgres) type Entries = Vec<(u64, Event)>;

const APPEND: &str = "WITH head AS (UPDATE head SET position = position + $1::bigint, \
        queued = queued + $2::bigint, running = running + $3::bigint, \
        complete = complete + $4::bigint, failed = failed + $5::bigint, \
        cancelled = cancelled + $6::bigint RETURNING position - $1::bigint AS before), \
    entries AS (INSERT INTO journal (first, count, events) \
        SELECT head.before + n.place, n.count, n.events FROM head \
        CROSS JOIN unnest($7::bigint[], $8::bigint[], $9::text[]) AS n (place, count, events)), \
    jobs AS (INSERT INTO journal_jobs (job, first) SELECT n.job, head.before + n.place FROM head \
        CROSS JOIN unnest($10::bigint[], $11::bigint[]) AS n (job, place)) \
    SELECT before FROM head";
/// The last position.
pub(in crate::postgres) const POSITION: &str = "SELECT position FROM head";
/// From the row that holds the position after `$1` on.
pub(in crate::postgres) const AFTER: &str = "SELECT first, events FROM journal \
    WHERE first >= coalesce((SELECT max(first) FROM journal WHERE first <= $1::bigint + 1), 1) \
    ORDER BY first LIMIT $2::bigint";
/// One job's rows.
pub(in crate::postgres) const OF_JOB: &str = "SELECT journal.first, events FROM journal_jobs \
    JOIN journal USING (first) WHERE job = $1::bigint ORDER BY journal.first";

/// Rows that begin after a position.
const CHUNKS: &str = "SELECT first, events, count FROM journal WHERE first > $1::bigint \
    ORDER BY first LIMIT $2::bigint";
const DROP: &str = "DELETE FROM journal WHERE first = ANY($1::bigint[])";
const DROP_OF_JOBS: &str = "DELETE FROM journal_jobs j USING unnest($1::bigint[], $2::bigint[]) \
    AS d (job, first) WHERE j.job = d.job AND j.first = d.first";
/// Just before the append: it takes the same lock.
const PRUNED: &str = "UPDATE head SET pruned = greatest(pruned, $1::bigint)";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[APPEND, CHUNKS, DROP, DROP_OF_JOBS, PRUNED];

/// How many jobs more, or less, stand in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::postgres) struct Moves(pub(in crate::postgres) [i64; 5]);

impl Moves {
    /// One job moved. `from` is none for a new one.
    pub(in crate::postgres) fn count(&mut self, from: Option<JobState>, to: JobState) {
        if let Some(from) = from {
            self.0[place(from)] -= 1;
        }
        self.0[place(to)] += 1;
    }
}

fn place(state: JobState) -> usize {
    match state {
        JobState::Queued => 0,
        JobState::Running => 1,
        JobState::Complete => 2,
        JobState::Failed => 3,
        JobState::Cancelled => 4,
    }
}

/// Appends entries and counts moves. Answers the position before the first of them.
pub(in crate::postgres) fn append<'a>(
    client: &'a Client,
    events: &[Event],
    moves: Moves,
) -> Question<'a> {
    let mut rows: (Vec<i64>, Vec<i64>, Vec<String>) = Default::default();
    let mut of_jobs: (Vec<i64>, Vec<i64>) = Default::default();
    for (index, chunk) in events.chunks(ENTRIES_MAX).enumerate() {
        let first = count(index * ENTRIES_MAX + 1);
        rows.0.push(first);
        rows.1.push(count(chunk.len()));
        rows.2.push(json(&chunk));
        for job in chunk.iter().filter_map(Event::job).collect::<BTreeSet<_>>() {
            of_jobs.0.push(number(job.0));
            of_jobs.1.push(first);
        }
    }
    let [queued, running, complete, failed, cancelled] = moves.0;
    question!(
        client,
        APPEND,
        count(events.len()),
        queued,
        running,
        complete,
        failed,
        cancelled,
        rows.0,
        rows.1,
        rows.2,
        of_jobs.0,
        of_jobs.1,
    )
}

pub(in crate::postgres) fn chunks(client: &Client, after: i64, limit: i64) -> Question<'_> {
    question!(client, CHUNKS, after, limit)
}

/// Decodes `first, events, count`.
pub(in crate::postgres) fn decode_chunk(row: &Row) -> Result<Chunk, Fault> {
    let columns = Columns::new("journal", row);
    let entries = decode(row)?;
    Ok(Chunk {
        first: columns.unsigned(0)?,
        count: columns.unsigned(2)?,
        newest: entries.iter().map(|(_, event)| event.at).max().unwrap_or_default(),
        jobs: entries.iter().filter_map(|(_, event)| event.job()).collect(),
    })
}

/// Forgets chunks, and remembers up to where entries may be missing.
pub(in crate::postgres) fn drop_chunks<'a>(
    client: &'a Client,
    chunks: &[Chunk],
) -> Vec<Question<'a>> {
    let Some(last) = chunks.iter().map(|chunk| chunk.first + chunk.count - 1).max() else {
        return Vec::new();
    };
    let firsts: Vec<_> = chunks.iter().map(|chunk| int(chunk.first)).collect();
    let of_jobs = chunks
        .iter()
        .flat_map(|chunk| chunk.jobs.iter().map(|job| (number(job.0), int(chunk.first))));
    let (jobs, of): (Vec<_>, Vec<_>) = of_jobs.unzip();
    vec![
        question!(client, DROP_OF_JOBS, jobs, of),
        question!(client, DROP, firsts),
        question!(client, PRUNED, int(last)),
    ]
}

/// Decodes `first, events`.
pub(in crate::postgres) fn decode(row: &Row) -> Result<Entries, Fault> {
    let columns = Columns::new("journal", row);
    let events: Vec<Event> = columns.json(1)?;
    Ok((columns.unsigned(0)?..).zip(events).collect())
}
