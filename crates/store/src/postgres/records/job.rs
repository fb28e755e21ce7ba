//! A job's row: the record as JSON, and beside it what is searched for.

use deadpool_postgres::Client;
use palisade_core::{JobId, job::Job};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::{Columns, count, instant, json, number},
    },
};

/// By their ids, locked in the order of the ids, as everybody does.
pub(in crate::postgres) const BY_ID: &str = "SELECT id, version, record, released FROM jobs \
    WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE";
/// The same in a later round, out of that order: whoever would have to wait begins again.
pub(in crate::postgres) const BY_ID_AT_ONCE: &str = "SELECT id, version, record, released FROM jobs \
    WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE NOWAIT";
pub(in crate::postgres) const LIVE: &str = "SELECT j.id, j.version, j.record, j.released \
    FROM unnest($1::bytea[], $2::text[]) AS w (job_key, tenant) \
    JOIN jobs j ON j.live AND j.job_key = w.job_key AND j.tenant = w.tenant \
    ORDER BY j.id FOR UPDATE OF j";
pub(in crate::postgres) const COMPLETE: &str = "SELECT j.id, j.version, j.record, j.released \
    FROM unnest($1::bytea[], $2::text[]) AS w (job_key, tenant) CROSS JOIN LATERAL ( \
        SELECT id, version, record, released FROM jobs WHERE NOT live AND job_key = w.job_key \
        AND tenant = w.tenant AND state = 'complete' ORDER BY id DESC LIMIT 1 FOR UPDATE) j";
pub(in crate::postgres) const OVER: &str = "SELECT j.id, j.version, j.record, j.released \
    FROM unnest($1::bytea[], $2::text[]) AS w (job_key, tenant) CROSS JOIN LATERAL ( \
        SELECT id, version, record, released FROM jobs WHERE NOT live AND job_key = w.job_key \
        AND tenant = w.tenant ORDER BY id DESC LIMIT 1 FOR UPDATE) j";
/// Queued and due, by priority: a loose scan over the priorities in use, each walked in the order
/// of the index. What another transaction has is passed over.
pub(in crate::postgres) const DUE: &str = "WITH RECURSIVE level (priority) AS ( \
        SELECT (SELECT priority FROM jobs WHERE state = 'queued' AND recipe = $1 \
            AND definition = $2 ORDER BY priority DESC LIMIT 1) \
        UNION ALL SELECT (SELECT priority FROM jobs WHERE state = 'queued' AND recipe = $1 \
            AND definition = $2 AND priority < level.priority ORDER BY priority DESC LIMIT 1) \
        FROM level WHERE level.priority IS NOT NULL) \
    SELECT due.id, due.version, due.record, due.released FROM level CROSS JOIN LATERAL ( \
        SELECT id, version, record, released FROM jobs WHERE state = 'queued' AND recipe = $1 \
        AND definition = $2 AND priority = level.priority AND run_at_ms <= $3::bigint \
        ORDER BY run_at_ms, id LIMIT $4::bigint FOR UPDATE SKIP LOCKED) due LIMIT $4::bigint";
/// When the next becomes due, and whether one is due already, apart from those that are here.
pub(in crate::postgres) const NEXT_DUE: &str = "WITH RECURSIVE level (priority) AS ( \
        SELECT (SELECT priority FROM jobs WHERE state = 'queued' AND recipe = $1 \
            AND definition = $2 ORDER BY priority DESC LIMIT 1) \
        UNION ALL SELECT (SELECT priority FROM jobs WHERE state = 'queued' AND recipe = $1 \
            AND definition = $2 AND priority < level.priority ORDER BY priority DESC LIMIT 1) \
        FROM level WHERE level.priority IS NOT NULL) \
    SELECT min((SELECT run_at_ms FROM jobs WHERE state = 'queued' AND recipe = $1 \
            AND definition = $2 AND priority = level.priority AND run_at_ms > $4::bigint \
            AND id <> ALL($3::bigint[]) ORDER BY run_at_ms LIMIT 1)), \
        coalesce(bool_or(EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND recipe = $1 \
            AND definition = $2 AND priority = level.priority AND run_at_ms <= $4::bigint \
            AND id <> ALL($3::bigint[]))), false) \
    FROM level WHERE level.priority IS NOT NULL";
const INSERT: &str = "INSERT INTO jobs (id, tenant, job_key, recipe, definition, priority, \
    run_at_ms, state, live, fence, completed_by, version, record, moved_at_ms) \
    SELECT id, tenant, job_key, recipe, definition, priority, run_at_ms, state, \
        state IN ('queued', 'running'), fence, completed_by, 1, record, moved_at_ms \
    FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::text[], $5::bytea[], $6::smallint[], \
        $7::bigint[], $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[]) \
        AS n (id, tenant, job_key, recipe, definition, priority, run_at_ms, state, fence, \
        completed_by, record, moved_at_ms)";
/// Compared before it is written, though the rows are locked: what a bug would overwrite, this
/// refuses. A fence never falls, and what is complete stays so.
const UPDATE: &str = "WITH written AS (UPDATE jobs j SET priority = n.priority, \
        run_at_ms = n.run_at_ms, state = n.state, live = n.state IN ('queued', 'running'), \
        fence = n.fence, completed_by = n.completed_by, version = n.version + 1, \
        record = n.record, moved_at_ms = n.moved_at_ms \
    FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::text[], \
        $6::bigint[], $7::bigint[], $8::text[], $9::bigint[]) \
        AS n (id, version, priority, run_at_ms, state, fence, completed_by, record, moved_at_ms) \
    WHERE j.id = n.id AND j.version = n.version AND j.fence <= n.fence \
        AND (j.state <> 'complete' OR n.state = 'complete') RETURNING 1) \
    SELECT palisade_expect(count(*), $10::bigint, 'jobs') FROM written";
const TOKENS: &str = "SELECT token, job FROM tokens WHERE token = ANY($1::bigint[])";
const INSERT_TOKENS: &str =
    "INSERT INTO tokens (token, job) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
const SET_RELEASED: &str = "UPDATE jobs j SET released = n.released \
    FROM unnest($1::bigint[], $2::boolean[]) AS n (id, released) WHERE j.id = n.id";
/// Which of them are queued or running. Not locked: one that moves meanwhile moves later.
const LIVES: &str = "SELECT id FROM jobs WHERE id = ANY($1::bigint[]) AND live";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[
    BY_ID,
    BY_ID_AT_ONCE,
    LIVE,
    COMPLETE,
    OVER,
    DUE,
    NEXT_DUE,
    INSERT,
    UPDATE,
    TOKENS,
    INSERT_TOKENS,
    SET_RELEASED,
    LIVES,
];

/// Whether a row of `id, version, record, released` says that the job was released.
pub(in crate::postgres) fn decode_released(row: &Row) -> Result<bool, Fault> {
    Columns::new("job", row).get(3)
}

/// Decodes `id, version, record`, whatever follows.
pub(in crate::postgres) fn decode(row: &Row) -> Result<(Job, i64), Fault> {
    let columns = Columns::new("job", row);
    Ok((columns.json(2)?, columns.get(1)?))
}

/// New jobs.
pub(in crate::postgres) fn insert<'a>(client: &'a Client, jobs: &[&Job]) -> Question<'a> {
    let column = |of: fn(&Job) -> String| jobs.iter().map(|job| of(job)).collect::<Vec<_>>();
    question!(
        client,
        INSERT,
        ids(jobs),
        column(|job| job.tenant.to_string()),
        jobs.iter().map(|job| job.key.0.as_bytes().to_vec()).collect::<Vec<_>>(),
        column(|job| job.spec.recipe.to_string()),
        jobs.iter().map(|job| job.spec.definition.as_bytes().to_vec()).collect::<Vec<_>>(),
        jobs.iter().map(|job| job.priority).collect::<Vec<_>>(),
        jobs.iter().map(|job| instant(job.run_at)).collect::<Vec<_>>(),
        column(|job| job.state.as_str().to_owned()),
        jobs.iter().map(|job| number(job.fence)).collect::<Vec<_>>(),
        completed_by(jobs),
        column(json),
        moved_at(jobs),
    )
}

/// Jobs as they are now, each with the version that was read.
pub(in crate::postgres) fn update<'a>(
    client: &'a Client,
    jobs: &[&Job],
    versions: Vec<i64>,
) -> Question<'a> {
    question!(
        client,
        UPDATE,
        ids(jobs),
        versions,
        jobs.iter().map(|job| job.priority).collect::<Vec<_>>(),
        jobs.iter().map(|job| instant(job.run_at)).collect::<Vec<_>>(),
        jobs.iter().map(|job| job.state.as_str()).collect::<Vec<_>>(),
        jobs.iter().map(|job| number(job.fence)).collect::<Vec<_>>(),
        completed_by(jobs),
        jobs.iter().map(json).collect::<Vec<_>>(),
        moved_at(jobs),
        count(jobs.len()),
    )
}

/// Says which jobs are released, and which are not any more.
pub(in crate::postgres) fn set_released(
    client: &Client,
    jobs: Vec<i64>,
    released: Vec<bool>,
) -> Question<'_> {
    question!(client, SET_RELEASED, jobs, released)
}

/// Which of these jobs are live.
pub(in crate::postgres) fn lives(client: &Client, jobs: Vec<i64>) -> Question<'_> {
    question!(client, LIVES, jobs)
}

/// Whose these tokens are.
pub(in crate::postgres) fn of_tokens(client: &Client, tokens: Vec<i64>) -> Question<'_> {
    question!(client, TOKENS, tokens)
}

/// Tokens that were granted. One that was granted before is refused.
pub(in crate::postgres) fn insert_tokens(
    client: &Client,
    tokens: Vec<i64>,
    jobs: Vec<i64>,
) -> Question<'_> {
    question!(client, INSERT_TOKENS, tokens, jobs)
}

fn ids(jobs: &[&Job]) -> Vec<i64> {
    jobs.iter().map(|job| id(job.id)).collect()
}

/// A job's id as its column holds it.
pub(in crate::postgres) fn id(id: JobId) -> i64 {
    number(id.0)
}

fn completed_by(jobs: &[&Job]) -> Vec<Option<i64>> {
    jobs.iter().map(|job| job.completed_by().map(number)).collect()
}

fn moved_at(jobs: &[&Job]) -> Vec<i64> {
    jobs.iter().map(|job| instant(job.moved_at)).collect()
}
