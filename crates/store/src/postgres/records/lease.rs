//! An open attempt's lease, as last renewed.

use deadpool_postgres::Client;
use palisade_core::lease::Lease;
use tokio_postgres::Row;

use crate::{
    command::Capability,
    fault::Fault,
    lease_book::Held,
    postgres::{
        session::{Question, question},
        values::{Columns, instant, int, number},
    },
};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT token, job, lease_id, worker, session, recipe, definition, granted_at_ms, \
             ttl_ms, deadline_ms, renewed_at_ms, life, backup_at_ms, last_chance FROM leases ",
            $rest
        )
    };
}

/// Running jobs of some leases, in their order, as many as are asked for. One of which another
/// transaction has the row is passed over, and the next is taken instead.
macro_rules! jobs_of {
    ($leases:literal, $limit:literal) => {
        concat!(
            "SELECT j.id, j.version, j.record, j.released FROM (SELECT l.job FROM leases l WHERE ",
            $leases,
            ") l CROSS JOIN LATERAL (SELECT id, version, record, released FROM jobs \
             WHERE id = l.job AND state = 'running' FOR UPDATE SKIP LOCKED) j LIMIT ",
            $limit
        )
    };
}

const BY_TOKEN: &str = select!("WHERE token = ANY($1::bigint[]) ORDER BY token FOR UPDATE");
const BY_JOB: &str = select!("WHERE job = ANY($1::bigint[]) ORDER BY token FOR UPDATE");
const BY_SESSION: &str = select!("WHERE session = ANY($1::text[]) ORDER BY token FOR UPDATE");
/// All of them.
pub(in crate::postgres) const EVERY: &str = select!("ORDER BY token");
/// Of some jobs, to read.
pub(in crate::postgres) const OF_JOBS: &str =
    select!("WHERE job = ANY($1::bigint[]) ORDER BY token");
/// Jobs of which no open attempt has time left, the longest lapsed first: each is found by the one of
/// its leases that ended last, and so in the order of the lease book. The jobs are locked, not
/// yet the leases: they are read again after it. Leases come first, and a lateral join keeps it so:
/// a plan that begins at the running jobs reads all of them.
pub(in crate::postgres) const LAPSED: &str = jobs_of!(
    "l.recipe = $1 AND l.definition = $2 AND l.deadline_ms <= $3::bigint AND NOT EXISTS ( \
        SELECT 1 FROM leases o WHERE o.job = l.job \
            AND (o.deadline_ms, o.token) > (l.deadline_ms, l.token)) \
    ORDER BY l.deadline_ms, l.job",
    "$4::bigint"
);
/// The same of those whose time ends them.
pub(in crate::postgres) const SPENT: &str = jobs_of!(
    "l.last_chance AND l.deadline_ms <= $1::bigint AND NOT EXISTS ( \
        SELECT 1 FROM leases o WHERE o.job = l.job AND o.deadline_ms > $1::bigint) \
    ORDER BY l.deadline_ms, l.job",
    "1000"
);
/// Jobs that may get a second attempt beside their only one.
pub(in crate::postgres) const BACKUPS: &str = jobs_of!(
    "l.backup_at_ms IS NOT NULL AND l.backup_at_ms <= $3::bigint AND l.recipe = $1 \
        AND l.definition = $2 AND NOT EXISTS ( \
        SELECT 1 FROM leases o WHERE o.job = l.job AND o.token <> l.token) \
    ORDER BY l.backup_at_ms, l.job",
    "$4::bigint"
);
/// When the first lapses or may get a backup, apart from those that are here already.
const NEXT: &str = "SELECT \
    (SELECT l.deadline_ms FROM leases l WHERE l.recipe = $1 AND l.definition = $2 \
        AND l.deadline_ms > $3::bigint AND l.token <> ALL($4::bigint[]) AND NOT EXISTS ( \
            SELECT 1 FROM leases o WHERE o.job = l.job AND o.deadline_ms > l.deadline_ms) \
        ORDER BY l.deadline_ms LIMIT 1), \
    (SELECT min(l.backup_at_ms) FROM leases l WHERE l.backup_at_ms IS NOT NULL \
        AND l.backup_at_ms > $3::bigint AND l.recipe = $1 AND l.definition = $2 \
        AND l.token <> ALL($4::bigint[]) AND NOT EXISTS ( \
            SELECT 1 FROM leases o WHERE o.job = l.job AND o.token <> l.token))";
const INSERT: &str = "INSERT INTO leases (token, job, lease_id, worker, session, recipe, \
    definition, granted_at_ms, ttl_ms, deadline_ms, renewed_at_ms, life, backup_at_ms, \
    last_chance) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::text[], \
    $5::text[], $6::text[], $7::bytea[], $8::bigint[], $9::bigint[], $10::bigint[], \
    $11::bigint[], $12::bigint[], $13::bigint[], $14::boolean[])";
/// A renewal changes the deadline, which is indexed, so hardly any is a HOT update: the index is what
/// lets a claim find the lapsed ones without reading all the others, and the table pays for it by
/// being unlogged, half empty, and vacuumed early. What renewals leave behind is used again at the
/// next vacuum, and the table stays as large as a round of them.
const UPDATE: &str = "UPDATE leases l SET deadline_ms = n.deadline_ms, \
    renewed_at_ms = n.renewed_at_ms, life = n.life, backup_at_ms = n.backup_at_ms, \
    last_chance = n.last_chance FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], \
    $4::bigint[], $5::bigint[], $6::boolean[]) \
    AS n (token, deadline_ms, renewed_at_ms, life, backup_at_ms, last_chance) \
    WHERE l.token = n.token";
const DELETE: &str = "DELETE FROM leases WHERE token = ANY($1::bigint[])";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] =
    &[BY_TOKEN, BY_JOB, BY_SESSION, LAPSED, SPENT, BACKUPS, NEXT, INSERT, UPDATE, DELETE];

pub(in crate::postgres) fn decode(row: &Row) -> Result<Held, Fault> {
    let columns = Columns::new("lease", row);
    Ok(Held {
        token: columns.number(0)?,
        job: columns.job(1)?,
        lease_id: columns.lease_id(2)?,
        worker: columns.parsed(3)?,
        session: columns.parsed(4)?,
        needs: Capability { recipe: columns.parsed(5)?, definition: columns.digest(6)? },
        granted_at: columns.instant(7)?,
        lease: Lease {
            ttl_ms: columns.unsigned(8)?,
            deadline: columns.instant(9)?,
            renewed_at: columns.instant(10)?,
            life: columns.unsigned(11)?,
        },
        backup_at: columns.optional_instant(12)?,
        last_chance: columns.get(13)?,
    })
}

pub(in crate::postgres) fn by_token(client: &Client, tokens: Vec<i64>) -> Question<'_> {
    question!(client, BY_TOKEN, tokens)
}

pub(in crate::postgres) fn by_job(client: &Client, jobs: Vec<i64>) -> Question<'_> {
    question!(client, BY_JOB, jobs)
}

pub(in crate::postgres) fn by_session(client: &Client, sessions: Vec<String>) -> Question<'_> {
    question!(client, BY_SESSION, sessions)
}

/// Whom a look into the leases of one capability is for.
#[derive(Debug, Clone, Copy)]
pub(in crate::postgres) enum Look {
    Lapsed,
    Backups,
}

/// Jobs to take over or to join, at most `limit`.
pub(in crate::postgres) fn look<'a>(
    client: &'a Client,
    look: Look,
    capability: &Capability,
    (now, limit): (i64, i64),
) -> Question<'a> {
    let sql = match look {
        Look::Lapsed => LAPSED,
        Look::Backups => BACKUPS,
    };
    let recipe = capability.recipe.to_string();
    question!(client, sql, recipe, capability.definition.as_bytes().to_vec(), now, limit)
}

pub(in crate::postgres) fn spent(client: &Client, now: i64) -> Question<'_> {
    question!(client, SPENT, now)
}

pub(in crate::postgres) fn next<'a>(
    client: &'a Client,
    capability: &Capability,
    now: i64,
    known: Vec<i64>,
) -> Question<'a> {
    let recipe = capability.recipe.to_string();
    question!(client, NEXT, recipe, capability.definition.as_bytes().to_vec(), now, known)
}

/// Leases that were granted.
pub(in crate::postgres) fn insert<'a>(client: &'a Client, held: &[&Held]) -> Question<'a> {
    let bytes = |of: fn(&Held) -> Vec<u8>| held.iter().map(|held| of(held)).collect::<Vec<_>>();
    let text = |of: fn(&Held) -> String| held.iter().map(|held| of(held)).collect::<Vec<_>>();
    let whole = |of: fn(&Held) -> i64| held.iter().map(|held| of(held)).collect::<Vec<_>>();
    question!(
        client,
        INSERT,
        whole(|held| number(held.token)),
        whole(|held| number(held.job.0)),
        bytes(|held| held.lease_id.0.to_be_bytes().to_vec()),
        text(|held| held.worker.to_string()),
        text(|held| held.session.to_string()),
        text(|held| held.needs.recipe.to_string()),
        bytes(|held| held.needs.definition.as_bytes().to_vec()),
        whole(|held| instant(held.granted_at)),
        whole(|held| int(held.lease.ttl_ms)),
        whole(|held| instant(held.lease.deadline)),
        whole(|held| instant(held.lease.renewed_at)),
        whole(|held| int(held.lease.life)),
        held.iter().map(|held| held.backup_at.map(instant)).collect::<Vec<_>>(),
        held.iter().map(|held| held.last_chance).collect::<Vec<_>>(),
    )
}

/// Leases as they are now.
pub(in crate::postgres) fn update<'a>(client: &'a Client, held: &[&Held]) -> Question<'a> {
    let whole = |of: fn(&Held) -> i64| held.iter().map(|held| of(held)).collect::<Vec<_>>();
    question!(
        client,
        UPDATE,
        whole(|held| number(held.token)),
        whole(|held| instant(held.lease.deadline)),
        whole(|held| instant(held.lease.renewed_at)),
        whole(|held| int(held.lease.life)),
        held.iter().map(|held| held.backup_at.map(instant)).collect::<Vec<_>>(),
        held.iter().map(|held| held.last_chance).collect::<Vec<_>>(),
    )
}

/// Leases that are held no longer.
pub(in crate::postgres) fn delete(client: &Client, tokens: Vec<i64>) -> Question<'_> {
    question!(client, DELETE, tokens)
}
