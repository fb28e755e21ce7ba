//! Queries about what surrounds the jobs: published names, notifications, the collector's walk.

use std::{cell::Cell, collections::BTreeMap, convert::Infallible};

use deadpool_postgres::Client;
use palisade_core::{JobId, Number, ObjectKey, Timestamp, object::Object};
use tokio_postgres::types::ToSql;

use crate::{
    fault::Fault,
    postgres::{
        records::{collection, job, object, outbox},
        values::{Columns, count, instant, number},
    },
    query::{Cases, JournalSpan, Query, Resolved, Scan, View, resolve},
};

use super::select;

const SPAN: &str = "SELECT position, pruned FROM head";
const OBJECTS_NAMED: &str =
    "SELECT fence, key, kind, last, content FROM objects WHERE key = ANY($1::text[])";
const JOB: &str = "SELECT id, version, record FROM jobs WHERE id = $1";
const CASES: &str = "SELECT generation, digest, stage, since_ms FROM collection \
    WHERE stage = $1 AND since_ms <= $2 ORDER BY since_ms, generation LIMIT $3";
const UNKEPT: &str = "SELECT s.generation, s.digest FROM ( \
        SELECT generation, digest, state FROM blobs WHERE generation > $1 \
        ORDER BY generation LIMIT $2) AS s \
    WHERE s.state <> 'condemned' AND ( \
        NOT EXISTS (SELECT 1 FROM keepers k WHERE k.generation = s.generation) \
        OR EXISTS (SELECT 1 FROM collection c WHERE c.generation = s.generation)) \
    ORDER BY s.generation";
const UNKEPT_END: &str = "SELECT generation FROM blobs WHERE generation > $1 \
    ORDER BY generation LIMIT 1 OFFSET $2::bigint - 1";
const PAST_JOBS: &str = "SELECT s.id FROM ( \
        SELECT id, live, moved_at_ms, released FROM jobs WHERE id > $1 ORDER BY id LIMIT $2) AS s \
    WHERE NOT s.live AND s.moved_at_ms <= $3 AND NOT s.released ORDER BY s.id";
const PAST_JOBS_END: &str =
    "SELECT id FROM jobs WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2::bigint - 1";

/// What was found in a stretch, and where the next one begins.
type Found<T> = (Vec<T>, Option<Number>);

/// Answers one of these queries.
pub(super) async fn answer(client: &Client, query: &Query) -> Result<View, Fault> {
    Ok(match query {
        Query::Resolve(key) => View::Resolve(resolved(client, key).await?),
        Query::Endpoints => {
            let rows = select(client, outbox::ENDPOINTS, &[]).await?;
            View::Endpoints(rows.iter().map(outbox::decode_endpoint).collect::<Result<_, _>>()?)
        }
        Query::Deliveries(filter) => {
            let before = filter.before.map_or(i64::MAX, number);
            let (endpoint, limit) = (filter.endpoint.to_string(), count(filter.limit));
            let values: [&(dyn ToSql + Sync); 4] = [&endpoint, &before, &filter.standing, &limit];
            let rows = select(client, outbox::LIST, &values).await?;
            View::Deliveries(rows.iter().map(outbox::decode).collect::<Result<_, _>>()?)
        }
        Query::Unkept(scan) => {
            let (blobs, next) = unkept(client, *scan).await?;
            View::Unkept(blobs, next)
        }
        Query::Cases(Cases { stage, until, limit }) => {
            let word = collection::stage_word(*stage);
            let values = (instant(*until), count(*limit));
            let rows = select(client, CASES, &[&word, &values.0, &values.1]).await?;
            View::Cases(rows.iter().map(collection::decode).collect::<Result<_, _>>()?)
        }
        Query::PastJobs { scan, until } => {
            let (jobs, next) = past_jobs(client, *scan, *until).await?;
            View::PastJobs(jobs, next)
        }
        _ => {
            let rows = select(client, SPAN, &[]).await?;
            let columns = Columns::new("head", &rows[0]);
            let (next, pruned) = (columns.unsigned(0)? + 1, columns.unsigned(1)?);
            View::JournalSpan(JournalSpan { pruned, next })
        }
    })
}

/// All names that a key may be read as are looked at together, then the one job that matters.
async fn resolved(client: &Client, key: &ObjectKey) -> Result<Option<Box<Resolved>>, Fault> {
    let names: Vec<_> = std::iter::once(key.clone()).chain(key.folders()).collect();
    let texts: Vec<&str> = names.iter().map(ObjectKey::as_str).collect();
    let mut objects: BTreeMap<ObjectKey, Object> = BTreeMap::new();
    for row in select(client, OBJECTS_NAMED, &[&texts]).await? {
        let object = object::decode(&row)?;
        objects.insert(object.key.clone(), object);
    }
    let named: Cell<Option<JobId>> = Cell::new(None);
    let object = |key: &ObjectKey| Ok(objects.get(key).cloned());
    let Ok::<_, Infallible>(found) = resolve(key, object, |id| {
        named.set(Some(id));
        Ok(None)
    });
    let Some(mut found) = found else { return Ok(None) };
    if let Some(id) = named.get() {
        let rows = select(client, JOB, &[&job::id(id)]).await?;
        let job = rows.first().map(job::decode).transpose()?;
        found.manifest = job.and_then(|(job, _)| Some(job.completion?.manifest));
    }
    Ok(Some(found))
}

async fn unkept(
    client: &Client,
    scan: Scan,
) -> Result<Found<(palisade_core::Digest, Number)>, Fault> {
    let (after, length) = (number(scan.after), count(scan.length.max(1)));
    let mut blobs = Vec::new();
    for row in select(client, UNKEPT, &[&after, &length]).await? {
        let columns = Columns::new("blob", &row);
        blobs.push((columns.digest(1)?, columns.number(0)?));
    }
    Ok((blobs, end_of(client, UNKEPT_END, scan).await?))
}

async fn past_jobs(client: &Client, scan: Scan, until: Timestamp) -> Result<Found<JobId>, Fault> {
    let (after, length) = (number(scan.after), count(scan.length.max(1)));
    let rows = select(client, PAST_JOBS, &[&after, &length, &instant(until)]).await?;
    let jobs = rows.iter().map(|row| Columns::new("job", row).job(0));
    let jobs = jobs.collect::<Result<_, _>>()?;
    Ok((jobs, end_of(client, PAST_JOBS_END, scan).await?))
}

/// The last of a stretch, if it was a full one: there may be more after it.
async fn end_of(client: &Client, sql: &str, scan: Scan) -> Result<Option<Number>, Fault> {
    let (after, length) = (number(scan.after), count(scan.length.max(1)));
    let rows = select(client, sql, &[&after, &length]).await?;
    rows.first().map(|row| Columns::new("stretch", row).number(0)).transpose()
}
