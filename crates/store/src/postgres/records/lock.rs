//! A lock's row, those who wait for it, and what is kept of its grants.

use std::collections::BTreeMap;

use deadpool_postgres::Client;
use palisade_core::{
    LockName, Number, RequestId,
    lease::Pair,
    lock::{Lock, LockClose, LockGrant, Waiter},
};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::{Columns, count, instant, json, number},
    },
};

const FIND: &str =
    "SELECT fence, name, holding FROM locks WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE";
/// Asked after the lock's row was locked, so that nobody changes the queue meanwhile.
const WAITERS: &str =
    "SELECT lock, waiter FROM lock_waiters WHERE lock = ANY($1::text[]) ORDER BY lock, ticket";
/// Those where time alone changes something. What another server is looking at is passed over.
const OVERDUE: &str = "SELECT name FROM locks WHERE name IN ( \
    SELECT w.lock FROM lock_waiters w JOIN locks l ON l.name = w.lock \
    WHERE w.until_ms <= $1::bigint OR l.deadline_ms IS NULL OR l.deadline_ms <= $1::bigint \
    LIMIT 1000) FOR UPDATE SKIP LOCKED";
const INSERT: &str = "INSERT INTO locks (name, fence, token, deadline_ms, holding) \
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])";
const UPDATE: &str = "WITH written AS (UPDATE locks l SET fence = n.fence, token = n.token, \
        deadline_ms = n.deadline_ms, holding = n.holding \
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) \
        AS n (name, fence, token, deadline_ms, holding) \
    WHERE l.name = n.name AND l.fence <= n.fence RETURNING 1) \
    SELECT palisade_expect(count(*), $6::bigint, 'locks') FROM written";
const DELETE_WAITERS: &str = "DELETE FROM lock_waiters w USING unnest($1::text[], $2::bigint[]) \
    AS d (lock, ticket) WHERE w.lock = d.lock AND w.ticket = d.ticket";
const PUT_WAITERS: &str = "INSERT INTO lock_waiters (lock, ticket, until_ms, waiter) \
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) \
    ON CONFLICT (lock, ticket) DO UPDATE SET until_ms = excluded.until_ms, \
    waiter = excluded.waiter";
/// Shared until the commit: what is done under a grant is done before that grant is closed, and so
/// before the next holder hears of its own. Whoever closes it waits.
const GRANTS: &str = "SELECT token, lock, lease_id, holder, request_id, closed_at_ms, \
    close_reason FROM lock_grants WHERE token = ANY($1::bigint[]) ORDER BY token FOR SHARE";
/// The newest of a lock to a request. Asked after the lock's row was locked.
const GRANTS_OF: &str = "SELECT g.token, g.lock, g.lease_id, g.holder, g.request_id, \
    g.closed_at_ms, g.close_reason FROM unnest($1::text[], $2::text[]) AS w (lock, request_id) \
    CROSS JOIN LATERAL (SELECT * FROM lock_grants WHERE request_id = w.request_id \
        AND lock = w.lock ORDER BY token DESC LIMIT 1) g";
/// The longest ended first. What another server forgets is passed over.
const SPENT_GRANTS: &str = "SELECT token FROM lock_grants WHERE closed_at_ms < $1::bigint \
    ORDER BY closed_at_ms, token LIMIT 10000 FOR UPDATE SKIP LOCKED";
const DROP_GRANTS: &str = "DELETE FROM lock_grants WHERE token = ANY($1::bigint[]) \
    AND closed_at_ms IS NOT NULL";
/// By rising token: what ends comes before what begins, so that a lock never has two open ones.
const PUT_GRANTS: &str = "INSERT INTO lock_grants (token, lock, lease_id, holder, request_id, \
    closed_at_ms, close_reason) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], \
    $4::text[], $5::text[], $6::bigint[], $7::text[]) \
    ON CONFLICT (token) DO UPDATE SET closed_at_ms = excluded.closed_at_ms, \
    close_reason = excluded.close_reason WHERE lock_grants.closed_at_ms IS NULL";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[
    FIND,
    WAITERS,
    OVERDUE,
    INSERT,
    UPDATE,
    DELETE_WAITERS,
    PUT_WAITERS,
    GRANTS,
    GRANTS_OF,
    SPENT_GRANTS,
    DROP_GRANTS,
    PUT_GRANTS,
];

/// Decodes `fence, name, holding`: without those who wait.
pub(in crate::postgres) fn decode(row: &Row) -> Result<Lock, Fault> {
    let columns = Columns::new("lock", row);
    let held = columns.get::<Option<&str>>(2)?.is_some();
    Ok(Lock {
        name: columns.parsed(1)?,
        fence: columns.number(0)?,
        holding: if held { Some(columns.json(2)?) } else { None },
        waiters: Vec::new(),
    })
}

/// Decodes `lock, waiter`.
pub(in crate::postgres) fn decode_waiter(row: &Row) -> Result<(LockName, Waiter), Fault> {
    let columns = Columns::new("waiter", row);
    Ok((columns.parsed(0)?, columns.json(1)?))
}

pub(in crate::postgres) fn decode_grant(row: &Row) -> Result<LockGrant, Fault> {
    let columns = Columns::new("grant", row);
    let closed = match columns.optional_instant(5)? {
        None => None,
        Some(at) => Some((at, columns.word::<LockClose>(6)?)),
    };
    Ok(LockGrant {
        name: columns.parsed(1)?,
        pair: Pair { token: columns.number(0)?, lease_id: columns.lease_id(2)? },
        holder: columns.parsed(3)?,
        request_id: columns.parsed(4)?,
        closed,
    })
}

/// Locks, and in the second question those who wait for them.
pub(in crate::postgres) fn find(client: &Client, names: Vec<String>) -> [Question<'_>; 2] {
    [question!(client, FIND, names.clone()), question!(client, WAITERS, names)]
}

pub(in crate::postgres) fn overdue(client: &Client, now: i64) -> Question<'_> {
    question!(client, OVERDUE, now)
}

pub(in crate::postgres) fn grants(client: &Client, tokens: Vec<i64>) -> Question<'_> {
    question!(client, GRANTS, tokens)
}

pub(in crate::postgres) fn grants_of<'a>(
    client: &'a Client,
    of: &[(LockName, RequestId)],
) -> Question<'a> {
    question!(
        client,
        GRANTS_OF,
        of.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>(),
        of.iter().map(|(_, request)| request.to_string()).collect::<Vec<_>>(),
    )
}

/// Tokens of grants that ended before an instant.
pub(in crate::postgres) fn spent_grants(client: &Client, before: i64) -> Question<'_> {
    question!(client, SPENT_GRANTS, before)
}

pub(in crate::postgres) fn drop_grants(client: &Client, tokens: Vec<i64>) -> Question<'_> {
    question!(client, DROP_GRANTS, tokens)
}

/// Locks that were not there.
pub(in crate::postgres) fn insert<'a>(client: &'a Client, locks: &[&Lock]) -> Question<'a> {
    let (names, fences, tokens, deadlines, holdings) = columns(locks);
    question!(client, INSERT, names, fences, tokens, deadlines, holdings)
}

/// Locks as they are now.
pub(in crate::postgres) fn update<'a>(client: &'a Client, locks: &[&Lock]) -> Question<'a> {
    let (names, fences, tokens, deadlines, holdings) = columns(locks);
    question!(client, UPDATE, names, fences, tokens, deadlines, holdings, count(locks.len()))
}

type LockColumns = (Vec<String>, Vec<i64>, Vec<Option<i64>>, Vec<Option<i64>>, Vec<Option<String>>);

fn columns(locks: &[&Lock]) -> LockColumns {
    let holding = |lock: &Lock| lock.holding.as_ref().map(json);
    let token = |lock: &Lock| lock.holding.as_ref().map(|held| number(held.token));
    let deadline = |lock: &Lock| lock.holding.as_ref().map(|held| instant(held.lease.deadline));
    (
        locks.iter().map(|lock| lock.name.to_string()).collect(),
        locks.iter().map(|lock| number(lock.fence)).collect(),
        locks.iter().map(|lock| token(lock)).collect(),
        locks.iter().map(|lock| deadline(lock)).collect(),
        locks.iter().map(|lock| holding(lock)).collect(),
    )
}

/// What became of those who wait: who left or was served, who came or was heard of.
pub(in crate::postgres) fn waiters<'a>(
    client: &'a Client,
    changes: &[(Option<&Lock>, &Lock)],
) -> Vec<Question<'a>> {
    let mut gone: (Vec<String>, Vec<i64>) = Default::default();
    let mut here: (Vec<String>, Vec<i64>, Vec<i64>, Vec<String>) = Default::default();
    for (before, lock) in changes {
        let before = before.map(|lock| lock.waiters.as_slice()).unwrap_or_default();
        let was: BTreeMap<Number, &Waiter> = before.iter().map(|one| (one.ticket, one)).collect();
        for waiter in &lock.waiters {
            if was.get(&waiter.ticket).is_none_or(|was| *was != waiter) {
                here.0.push(lock.name.to_string());
                here.1.push(number(waiter.ticket));
                here.2.push(instant(waiter.wants_until.min(waiter.alive_until)));
                here.3.push(json(waiter));
            }
        }
        for ticket in was.into_keys() {
            if lock.waiters.iter().all(|waiter| waiter.ticket != ticket) {
                gone.0.push(lock.name.to_string());
                gone.1.push(number(ticket));
            }
        }
    }
    let mut questions = Vec::new();
    if !gone.0.is_empty() {
        questions.push(question!(client, DELETE_WAITERS, gone.0, gone.1));
    }
    if !here.0.is_empty() {
        questions.push(question!(client, PUT_WAITERS, here.0, here.1, here.2, here.3));
    }
    questions
}

/// Grants, new or ended, by rising token.
pub(in crate::postgres) fn put_grants<'a>(
    client: &'a Client,
    grants: &[&LockGrant],
) -> Question<'a> {
    question!(
        client,
        PUT_GRANTS,
        grants.iter().map(|grant| number(grant.pair.token)).collect::<Vec<_>>(),
        grants.iter().map(|grant| grant.name.to_string()).collect::<Vec<_>>(),
        grants.iter().map(|g| g.pair.lease_id.0.to_be_bytes().to_vec()).collect::<Vec<_>>(),
        grants.iter().map(|grant| grant.holder.to_string()).collect::<Vec<_>>(),
        grants.iter().map(|grant| grant.request_id.to_string()).collect::<Vec<_>>(),
        grants.iter().map(|grant| grant.closed.map(|(at, _)| instant(at))).collect::<Vec<_>>(),
        grants.iter().map(|grant| grant.closed.map(|(_, how)| how.as_str())).collect::<Vec<_>>(),
    )
}
