//! What was heard of sessions: their highest heartbeat, and pauses reported lately.

use deadpool_postgres::Client;
use palisade_core::{Number, SessionId};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::{Columns, int, number},
    },
};

const BEATS: &str =
    "SELECT session, seq FROM sessions WHERE session = ANY($1::text[]) ORDER BY session FOR UPDATE";
const PUT_BEATS: &str = "INSERT INTO sessions (session, seq, seen_at_ms) \
    SELECT session, seq, $3::bigint FROM unnest($1::text[], $2::bigint[]) AS n (session, seq) \
    ON CONFLICT (session) DO UPDATE SET seq = greatest(sessions.seq, excluded.seq), \
    seen_at_ms = excluded.seen_at_ms";
const PAUSES: &str = "SELECT token, pause_ms FROM pauses JOIN \
    unnest($1::bigint[], $2::bigint[]) AS w (token, pause_ms) USING (token, pause_ms)";
const PUT_PAUSES: &str = "INSERT INTO pauses (token, pause_ms, at_ms) \
    SELECT token, pause_ms, $3::bigint FROM unnest($1::bigint[], $2::bigint[]) \
    AS n (token, pause_ms)";
/// Forgotten, a heartbeat costs a lease its release, and a pause is told twice: an hour is enough.
pub(in crate::postgres) const FORGET: &str = "WITH beats AS (DELETE FROM sessions s \
    WHERE s.seen_at_ms < $1::bigint - 3600000 \
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.session = s.session)) \
    DELETE FROM pauses WHERE at_ms < $1::bigint - 3600000";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[BEATS, PUT_BEATS, PAUSES, PUT_PAUSES];

pub(in crate::postgres) fn decode_beat(row: &Row) -> Result<(SessionId, u64), Fault> {
    let columns = Columns::new("session", row);
    Ok((columns.parsed(0)?, columns.unsigned(1)?))
}

pub(in crate::postgres) fn decode_pause(row: &Row) -> Result<(Number, u64), Fault> {
    let columns = Columns::new("pause", row);
    Ok((columns.number(0)?, columns.unsigned(1)?))
}

pub(in crate::postgres) fn beats(client: &Client, sessions: Vec<String>) -> Question<'_> {
    question!(client, BEATS, sessions)
}

pub(in crate::postgres) fn put_beats<'a>(
    client: &'a Client,
    beats: &[(&SessionId, u64)],
    now: i64,
) -> Question<'a> {
    question!(
        client,
        PUT_BEATS,
        beats.iter().map(|(session, _)| session.to_string()).collect::<Vec<_>>(),
        beats.iter().map(|(_, seq)| int(*seq)).collect::<Vec<_>>(),
        now,
    )
}

pub(in crate::postgres) fn pauses<'a>(
    client: &'a Client,
    pauses: &[(Number, u64)],
) -> Question<'a> {
    let (tokens, ms) = columns(pauses);
    question!(client, PAUSES, tokens, ms)
}

pub(in crate::postgres) fn put_pauses<'a>(
    client: &'a Client,
    pauses: &[(Number, u64)],
    now: i64,
) -> Question<'a> {
    let (tokens, ms) = columns(pauses);
    question!(client, PUT_PAUSES, tokens, ms, now)
}

fn columns(pauses: &[(Number, u64)]) -> (Vec<i64>, Vec<i64>) {
    pauses.iter().map(|(token, pause_ms)| (number(*token), int(*pause_ms))).unzip()
}
