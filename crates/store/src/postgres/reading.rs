//! Answering queries, each in one snapshot: all that it reads is of one moment.

mod effects;

use std::collections::BTreeMap;

use deadpool_postgres::Client;
use palisade_core::{
    JobId, LockName,
    job::{Job, JobState},
    lock::Lock,
};
use tokio_postgres::types::ToSql;

use crate::{
    fault::Fault,
    lease_book::{Held, LeaseBook},
    memory::lease_view,
    query::{JobFilter, Page, Query, View},
};

use super::{
    busy::Busy,
    engine::Engine,
    records::{blob, job, journal, lease, lock, object},
    trouble::Trouble,
    values::{Columns, count, fault, int},
};

pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
pub(super) const NEWEST_BLOB: &str = "SELECT generation, digest, state, size_bytes FROM blobs \
    WHERE digest = $1 ORDER BY generation DESC LIMIT 1";
const LOCKS: &str = "SELECT fence, name, holding FROM locks WHERE name >= $1 AND name > $2 \
    AND starts_with(name, $1) ORDER BY name LIMIT $3";
const WAITERS: &str =
    "SELECT lock, waiter FROM lock_waiters WHERE lock = ANY($1::text[]) ORDER BY lock, ticket";
const LOCK: &str = "SELECT fence, name, holding FROM locks WHERE name = $1";
const OBJECT: &str = "SELECT fence, key, kind, last, content FROM objects WHERE key = $1";
const OBJECTS: &str = "SELECT fence, key, kind, last, content FROM objects WHERE key >= $1 \
    AND key > $2 AND starts_with(key, $1) AND readable ORDER BY key LIMIT $3";
const COUNTS: &str = "SELECT queued, running, complete, failed, cancelled FROM head";

impl Engine {
    /// Answers a query.
    pub(super) async fn query(&self, query: &Query) -> Result<View, crate::Failure> {
        let unavailable = |trouble: Trouble| trouble.failure();
        let client = Busy::new(self.reader().await.map_err(unavailable)?);
        let read = async {
            client.batch_execute(BEGIN).await.map_err(fault)?;
            let view = answer(&client, query).await?;
            client.batch_execute("COMMIT").await.map_err(fault)?;
            Ok(view)
        };
        match read.await {
            Ok(view) => {
                drop(client.done());
                Ok(view)
            }
            Err(fault) => {
                if client.batch_execute("ROLLBACK").await.is_ok() {
                    drop(client.done());
                }
                Err(unavailable(Trouble::Fault(fault)))
            }
        }
    }
}

async fn answer(client: &Client, query: &Query) -> Result<View, Fault> {
    Ok(match query {
        Query::Job(id) => {
            let sql = "SELECT id, version, record FROM jobs WHERE id = $1";
            let jobs = jobs(client, sql, &[&job::id(*id)]).await?;
            View::Job(jobs.into_iter().next().map(Box::new))
        }
        Query::Jobs(filter) => View::Jobs(list(client, filter).await?),
        Query::History(id) => View::History(of_job(client, *id).await?),
        Query::Events { after, limit } => View::Events(events(client, *after, *limit).await?),
        Query::Blob(digest) => {
            let rows = select(client, NEWEST_BLOB, &[&digest.as_bytes().as_slice()]).await?;
            View::Blob(rows.first().map(blob::decode).transpose()?)
        }
        Query::Leases => {
            let rows = select(client, lease::EVERY, &[]).await?;
            let held: Result<Vec<Held>, _> = rows.iter().map(lease::decode).collect();
            View::Leases(held?.iter().map(lease_view).collect())
        }
        Query::Lock(name) => {
            let locks = locks(client, LOCK, &[&name.as_str()]).await?;
            View::Lock(locks.into_iter().next().map(Box::new))
        }
        Query::Locks(page) => {
            let (prefix, after, limit) = page_values(page);
            View::Locks(locks(client, LOCKS, &[&prefix, &after, &limit]).await?)
        }
        Query::Object(key) => {
            let rows = select(client, OBJECT, &[&key.as_str()]).await?;
            View::Object(rows.first().map(object::decode).transpose()?.map(Box::new))
        }
        Query::Objects(page) => {
            let (prefix, after, limit) = page_values(page);
            let rows = select(client, OBJECTS, &[&prefix, &after, &limit]).await?;
            View::Objects(rows.iter().map(object::decode).collect::<Result<_, _>>()?)
        }
        Query::JournalSpan
        | Query::Resolve(_)
        | Query::Endpoints
        | Query::Deliveries(_)
        | Query::Unkept(_)
        | Query::Cases(_)
        | Query::PastJobs { .. } => effects::answer(client, query).await?,
        Query::Counts => {
            let rows = select(client, COUNTS, &[]).await?;
            let columns = Columns::new("head", &rows[0]);
            let counted = |(index, state)| Ok((state, columns.unsigned(index)?));
            let counts = JobState::ALL.into_iter().enumerate().map(counted);
            View::Counts(counts.collect::<Result<_, Fault>>()?)
        }
    })
}

pub(super) async fn select(
    client: &Client,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<tokio_postgres::Row>, Fault> {
    let statement = client.prepare_cached(sql).await.map_err(fault)?;
    client.query(&statement, values).await.map_err(fault)
}

/// Jobs, each with its leases as last renewed.
async fn jobs(
    client: &Client,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Job>, Fault> {
    let mut jobs = Vec::new();
    for row in select(client, sql, values).await? {
        jobs.push(job::decode(&row)?.0);
    }
    let open = jobs.iter().filter(|job| job.has_open_attempt());
    let open: Vec<_> = open.map(|open| job::id(open.id)).collect();
    if !open.is_empty() {
        let mut book = LeaseBook::default();
        for row in select(client, lease::OF_JOBS, &[&open]).await? {
            book.load(lease::decode(&row)?);
        }
        for job in &mut jobs {
            book.overlay(job);
        }
    }
    Ok(jobs)
}

async fn list(client: &Client, filter: &JobFilter) -> Result<Vec<Job>, Fault> {
    let before = filter.before.map_or(i64::MAX, job::id);
    let limit = count(filter.limit);
    let recipe = filter.recipe.as_ref().map(palisade_core::RecipeName::as_str);
    // Each state that has an index of its own is found by it.
    let source = match filter.state {
        Some(JobState::Running) => "state = 'running'",
        Some(JobState::Failed) => "state = 'failed'",
        Some(JobState::Cancelled) => "state = 'cancelled'",
        Some(JobState::Queued) => "state = 'queued'",
        Some(JobState::Complete) => "state = 'complete'",
        None => "true",
    };
    let sql = format!(
        "SELECT id, version, record FROM jobs WHERE id < $1 AND {source} \
         AND ($3::text IS NULL OR recipe = $3) ORDER BY id DESC LIMIT $2"
    );
    jobs(client, &sql, &[&before, &limit, &recipe]).await
}

async fn locks(
    client: &Client,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Lock>, Fault> {
    let rows = select(client, sql, values).await?;
    let mut locks = rows.iter().map(lock::decode).collect::<Result<Vec<_>, _>>()?;
    let places: BTreeMap<LockName, usize> =
        locks.iter().enumerate().map(|(place, lock)| (lock.name.clone(), place)).collect();
    let names: Vec<&str> = places.keys().map(LockName::as_str).collect();
    for row in select(client, WAITERS, &[&names]).await? {
        let (name, waiter) = lock::decode_waiter(&row)?;
        if let Some(place) = places.get(&name) {
            locks[*place].waiters.push(waiter);
        }
    }
    Ok(locks)
}

/// A page's prefix, cursor and limit.
fn page_values(page: &Page) -> (&str, &str, i64) {
    (&page.prefix, page.after.as_deref().unwrap_or(""), count(page.limit))
}

async fn of_job(client: &Client, id: JobId) -> Result<journal::Entries, Fault> {
    let mut entries = Vec::new();
    for row in select(client, journal::OF_JOB, &[&job::id(id)]).await? {
        let unpacked = journal::decode(&row)?;
        entries.extend(unpacked.into_iter().filter(|(_, event)| event.job() == Some(id)));
    }
    Ok(entries)
}

/// Entries after a position, oldest first, at most `limit`.
pub(super) async fn events(
    client: &Client,
    after: u64,
    limit: usize,
) -> Result<journal::Entries, Fault> {
    // A row holds at least one entry; the first may hold none that is asked for.
    let rows_max = count(limit).saturating_add(1);
    let from = int(after).min(i64::MAX - 1);
    let mut entries = Vec::new();
    for row in select(client, journal::AFTER, &[&from, &rows_max]).await? {
        entries.extend(journal::decode(&row)?.into_iter().filter(|(at, _)| *at > after));
        if entries.len() >= limit {
            break;
        }
    }
    entries.truncate(limit);
    Ok(entries)
}
