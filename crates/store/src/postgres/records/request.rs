//! The first answer to a request.

use deadpool_postgres::Client;
use palisade_core::RequestId;
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::Columns,
    },
    tables::{Recorded, Scope},
};

const FIND: &str = "SELECT scope, id, fingerprint, answer FROM requests \
    JOIN unnest($1::text[], $2::text[]) AS w (scope, id) USING (scope, id)";
/// A request that another server has answered meanwhile is refused: the batch runs again and finds
/// that answer.
const INSERT: &str = "INSERT INTO requests (scope, id, fingerprint, answer, at_ms) \
    SELECT scope, id, fingerprint, answer, $5::bigint \
    FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) \
        AS n (scope, id, fingerprint, answer)";
/// The oldest first. What another server forgets is passed over.
const OLD: &str = "SELECT scope, id, fingerprint, answer FROM requests WHERE at_ms < $1::bigint \
    ORDER BY at_ms LIMIT $2::bigint FOR UPDATE SKIP LOCKED";
const DELETE: &str = "DELETE FROM requests r USING unnest($1::text[], $2::text[]) AS d (scope, id) \
    WHERE r.scope = d.scope AND r.id = d.id";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[FIND, INSERT, OLD, DELETE];

/// A scope as its column holds it.
pub(in crate::postgres) fn scope_column(scope: &Scope) -> String {
    match scope {
        Scope::Tenant(tenant) => format!("tenant/{tenant}"),
        Scope::Job(job) => format!("job/{job}"),
    }
}

fn scope_of(column: &str) -> Option<Scope> {
    match column.split_once('/')? {
        ("tenant", tenant) => tenant.parse().ok().map(Scope::Tenant),
        ("job", job) => job.parse().ok().map(Scope::Job),
        _ => None,
    }
}

/// Decodes `scope, id, fingerprint, answer`.
pub(in crate::postgres) fn decode(row: &Row) -> Result<((Scope, RequestId), Recorded), Fault> {
    let columns = Columns::new("request", row);
    let scope = columns.text(0)?;
    let scope = scope_of(scope)
        .ok_or_else(|| columns.corrupt(0, format!("no scope is called {scope:?}")))?;
    let recorded = Recorded { fingerprint: columns.digest(2)?, answer: columns.get(3)? };
    Ok(((scope, columns.parsed(1)?), recorded))
}

/// Those given before an instant, at most so many.
pub(in crate::postgres) fn old(client: &Client, before: i64, limit: i64) -> Question<'_> {
    question!(client, OLD, before, limit)
}

/// Forgets answers.
pub(in crate::postgres) fn delete<'a>(
    client: &'a Client,
    requests: &[&(Scope, RequestId)],
) -> Question<'a> {
    question!(
        client,
        DELETE,
        requests.iter().map(|(scope, _)| scope_column(scope)).collect::<Vec<_>>(),
        requests.iter().map(|(_, id)| id.to_string()).collect::<Vec<_>>(),
    )
}

pub(in crate::postgres) fn find<'a>(
    client: &'a Client,
    requests: &[&(Scope, RequestId)],
) -> Question<'a> {
    question!(
        client,
        FIND,
        requests.iter().map(|(scope, _)| scope_column(scope)).collect::<Vec<_>>(),
        requests.iter().map(|(_, id)| id.to_string()).collect::<Vec<_>>(),
    )
}

pub(in crate::postgres) fn insert<'a>(
    client: &'a Client,
    requests: &[(&(Scope, RequestId), &Recorded)],
    now: i64,
) -> Question<'a> {
    let bytes = |recorded: &Recorded| recorded.fingerprint.as_bytes().to_vec();
    question!(
        client,
        INSERT,
        requests.iter().map(|((scope, _), _)| scope_column(scope)).collect::<Vec<_>>(),
        requests.iter().map(|((_, id), _)| id.to_string()).collect::<Vec<_>>(),
        requests.iter().map(|(_, recorded)| bytes(recorded)).collect::<Vec<_>>(),
        requests.iter().map(|(_, recorded)| recorded.answer.clone()).collect::<Vec<_>>(),
        now,
    )
}
