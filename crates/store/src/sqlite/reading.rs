//! Answering queries, on the writer's connection or on a reader's own.

use palisade_core::{
    JobId, LockName, Number,
    job::{Job, JobState},
    lease::Lease,
    lock::Lock,
};
use rusqlite::{Connection, ToSql};

use crate::{
    fault::Fault,
    query::{JobFilter, JournalSpan, LeaseView, Query, View, resolve},
};

use super::{
    records::{blob, collection, job, journal, lock, meta::Meta, object, outbox},
    values::{Columns, fault, number},
};

/// Tells the lease of an open attempt as last renewed, where that lives in memory alone.
pub(super) type Renewed<'a> = &'a dyn Fn(Number) -> Option<Lease>;

/// What memory knows better than the disk.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    /// Leases as last renewed.
    pub(super) renewed: Renewed<'a>,
    /// Locks that are held, with those who wait.
    pub(super) locks: &'a dyn Fn(&LockName) -> Option<Lock>,
}

/// Answers a query. The caller has begun a transaction, so that all it reads is of one moment.
pub(super) fn query(
    connection: &Connection,
    query: &Query,
    memory: Memory<'_>,
) -> Result<View, Fault> {
    let Memory { renewed, locks } = memory;
    // A lock that is held is in memory as it is; one that is free is on the disk.
    let as_it_is = |lock: Lock| locks(&lock.name).unwrap_or(lock);
    Ok(match query {
        Query::Job(id) => View::Job(one(connection, *id, renewed)?.map(Box::new)),
        Query::Jobs(filter) => View::Jobs(list(connection, filter, renewed)?),
        Query::History(id) => View::History(journal::of_job(connection, *id)?),
        Query::Events { after, limit } => View::Events(journal::after(connection, *after, *limit)?),
        Query::JournalSpan => {
            let Meta { journal_next: next, journal_pruned: pruned, .. } = Meta::read(connection)?;
            View::JournalSpan(JournalSpan { pruned, next })
        }
        Query::Blob(digest) => View::Blob(blob::newest(connection, *digest)?),
        Query::Leases => View::Leases(leases(connection, renewed)?),
        Query::Lock(name) => View::Lock(lock::read(connection, name)?.map(as_it_is).map(Box::new)),
        Query::Locks(page) => {
            View::Locks(lock::list(connection, page)?.into_iter().map(as_it_is).collect())
        }
        Query::Object(key) => View::Object(object::read(connection, key)?.map(Box::new)),
        Query::Resolve(key) => View::Resolve(resolve(
            key,
            |key| object::read(connection, key),
            |id| job::manifest(connection, id),
        )?),
        Query::Objects(page) => View::Objects(object::list(connection, page)?),
        Query::Unkept(scan) => {
            let (blobs, next) = collection::unkept(connection, scan)?;
            View::Unkept(blobs, next)
        }
        Query::Cases(asked) => View::Cases(collection::cases(connection, asked)?),
        Query::PastJobs { scan, until } => {
            let (jobs, next) = collection::past_jobs(connection, scan, *until)?;
            View::PastJobs(jobs, next)
        }
        Query::Endpoints => View::Endpoints(outbox::endpoints(connection)?),
        Query::Deliveries(filter) => View::Deliveries(outbox::list(connection, filter)?),
        Query::Counts => {
            let counts = Meta::read(connection)?.counts;
            View::Counts(JobState::ALL.into_iter().zip(counts).collect())
        }
    })
}

fn one(connection: &Connection, id: JobId, renewed: Renewed<'_>) -> Result<Option<Job>, Fault> {
    let mut job = job::read(connection, id)?;
    if let Some(job) = &mut job {
        overlay(job, renewed);
    }
    Ok(job)
}

fn overlay(job: &mut Job, renewed: Renewed<'_>) {
    for attempt in job.attempts.iter_mut().filter(|attempt| attempt.closed.is_none()) {
        attempt.lease = renewed(attempt.token).unwrap_or(attempt.lease);
    }
}

fn list(
    connection: &Connection,
    filter: &JobFilter,
    renewed: Renewed<'_>,
) -> Result<Vec<Job>, Fault> {
    let before = filter.before.map_or(i64::MAX, |before| number(before.0));
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let recipe = filter.recipe.as_ref().map(palisade_core::RecipeName::as_str);
    let state = filter.state.map(JobState::as_str);
    // Each state is found by the index that holds few others; the parameters keep their places.
    let source = match filter.state {
        Some(JobState::Running) => {
            "id IN (SELECT job FROM attempts WHERE closed_at_ms IS NULL) AND state = ?3"
        }
        Some(JobState::Failed) => "state = 'failed' AND state = ?3",
        Some(JobState::Cancelled) => "state = 'cancelled' AND state = ?3",
        Some(JobState::Queued | JobState::Complete) => "state = ?3",
        None => "?3 IS NULL",
    };
    let sql = format!(
        "SELECT {} FROM jobs WHERE id < ?1 AND {source} AND (?4 IS NULL OR recipe = ?4) \
         ORDER BY id DESC LIMIT ?2",
        job::COLUMNS
    );
    let values: [&dyn ToSql; 4] = [&before, &limit, &state, &recipe];
    let mut statement = connection.prepare_cached(&sql).map_err(fault)?;
    let mut rows = statement.query(values).map_err(fault)?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let mut job = job::decode(connection, &Columns::new("job", row))?;
        overlay(&mut job, renewed);
        jobs.push(job);
    }
    Ok(jobs)
}

fn leases(connection: &Connection, renewed: Renewed<'_>) -> Result<Vec<LeaseView>, Fault> {
    let sql = "SELECT token, job, worker, session, granted_at_ms, ttl_ms, deadline_ms, \
               renewed_at_ms, life FROM attempts WHERE closed_at_ms IS NULL";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([]).map_err(fault)?;
    let mut leases = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let columns = Columns::new("attempt", row);
        let token = columns.number(0)?;
        let on_disk = Lease {
            ttl_ms: columns.unsigned(5)?,
            deadline: columns.instant(6)?,
            renewed_at: columns.instant(7)?,
            life: columns.unsigned(8)?,
        };
        leases.push(LeaseView {
            token,
            job: columns.job(1)?,
            worker: columns.parsed(2)?,
            session: columns.parsed(3)?,
            granted_at: columns.instant(4)?,
            lease: renewed(token).unwrap_or(on_disk),
        });
    }
    leases.sort_by_key(|lease| lease.token);
    Ok(leases)
}

/// The jobs that have an open attempt: what a start has to know.
pub(super) fn jobs_with_open_attempts(connection: &Connection) -> Result<Vec<Job>, Fault> {
    let sql = "SELECT DISTINCT job FROM attempts WHERE closed_at_ms IS NULL";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([]).map_err(fault)?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next().map_err(fault)? {
        let id = Columns::new("attempt", row).job(0)?;
        let missing = || Fault::Corrupt {
            record: id.to_string(),
            what: "it has attempts, but is not there".to_owned(),
        };
        jobs.push(job::read(connection, id)?.ok_or_else(missing)?);
    }
    Ok(jobs)
}
