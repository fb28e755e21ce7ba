//! What a claim was granted: one row a claim, however many jobs it got.

use deadpool_postgres::Client;
use palisade_core::{RequestId, SessionId};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        overlay::Grants,
        session::{Question, question},
        values::{Columns, json},
    },
};

const FIND: &str = "SELECT session, claim, grants FROM claims \
    JOIN unnest($1::text[], $2::text[]) AS w (session, claim) USING (session, claim)";
/// A claim that another server has answered meanwhile is refused: the batch runs again and finds
/// that answer.
const INSERT: &str = "INSERT INTO claims (session, claim, grants, at_ms) \
    SELECT session, claim, grants, $4::bigint FROM unnest($1::text[], $2::text[], $3::text[]) \
        AS n (session, claim, grants)";
/// The oldest first. What another server forgets is passed over.
const OLD: &str = "SELECT session, claim, grants FROM claims WHERE at_ms < $1::bigint \
    ORDER BY at_ms LIMIT $2::bigint FOR UPDATE SKIP LOCKED";
const DELETE: &str = "DELETE FROM claims c USING unnest($1::text[], $2::text[]) \
    AS d (session, claim) WHERE c.session = d.session AND c.claim = d.claim";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[FIND, INSERT, OLD, DELETE];

pub(in crate::postgres) fn decode(row: &Row) -> Result<((SessionId, RequestId), Grants), Fault> {
    let columns = Columns::new("claim", row);
    Ok(((columns.parsed(0)?, columns.parsed(1)?), columns.json(2)?))
}

pub(in crate::postgres) fn find<'a>(
    client: &'a Client,
    claims: &[&(SessionId, RequestId)],
) -> Question<'a> {
    question!(
        client,
        FIND,
        claims.iter().map(|(session, _)| session.to_string()).collect::<Vec<_>>(),
        claims.iter().map(|(_, claim)| claim.to_string()).collect::<Vec<_>>(),
    )
}

pub(in crate::postgres) fn insert<'a>(
    client: &'a Client,
    claims: &[(&(SessionId, RequestId), &Grants)],
    now: i64,
) -> Question<'a> {
    question!(
        client,
        INSERT,
        claims.iter().map(|((session, _), _)| session.to_string()).collect::<Vec<_>>(),
        claims.iter().map(|((_, claim), _)| claim.to_string()).collect::<Vec<_>>(),
        claims.iter().map(|(_, grants)| json(grants)).collect::<Vec<_>>(),
        now,
    )
}

/// Those answered before an instant, at most so many.
pub(in crate::postgres) fn old(client: &Client, before: i64, limit: i64) -> Question<'_> {
    question!(client, OLD, before, limit)
}

/// Forgets what claims were granted.
pub(in crate::postgres) fn delete<'a>(
    client: &'a Client,
    claims: &[&(SessionId, RequestId)],
) -> Question<'a> {
    question!(
        client,
        DELETE,
        claims.iter().map(|(session, _)| session.to_string()).collect::<Vec<_>>(),
        claims.iter().map(|(_, claim)| claim.to_string()).collect::<Vec<_>>(),
    )
}
