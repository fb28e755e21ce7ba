//! Rows of the outbox, and its endpoints'.

use deadpool_postgres::Client;
use palisade_core::{
    JobId, Number, Timestamp,
    outbox::{Delivery, Endpoint, EndpointId, Notice, Standing},
};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::{Columns, instant, int, json, number},
    },
};

macro_rules! select {
    ($from:literal) => {
        concat!(
            "SELECT o.number, o.endpoint, o.job, o.submission, o.event, o.token, o.seq, o.at_ms, \
             o.body, o.standing, o.lease_id, o.due_at_ms, o.tries, o.queued_at_ms, o.last FROM ",
            $from
        )
    };
}

/// By id, as text sorts.
pub(in crate::postgres) const ENDPOINTS: &str = "SELECT endpoint FROM endpoints ORDER BY id";
/// A page of an endpoint's, newest first.
pub(in crate::postgres) const LIST: &str = select!(
    "outbox o WHERE o.endpoint = $1 AND o.number < $2 \
     AND ($3::text IS NULL OR o.standing = $3) ORDER BY o.number DESC LIMIT $4"
);
/// All of them, by rising number.
pub(in crate::postgres) const AFTER: &str =
    select!("outbox o WHERE o.number > $1 ORDER BY o.number LIMIT $2");
const FIND: &str =
    select!("outbox o WHERE o.number = ANY($1::bigint[]) ORDER BY o.number FOR UPDATE");
const OPEN_OF_JOBS: &str = select!(
    "unnest($1::text[], $2::bigint[]) AS w (endpoint, job) \
     JOIN outbox o ON o.endpoint = w.endpoint AND o.job = w.job \
     WHERE o.standing IN ('pending', 'leased') ORDER BY o.number FOR UPDATE OF o"
);
/// Of each endpoint those that are due, each the first of its job among those open. What another
/// server has is passed over. The first is asked for one by one: as a join, a plan made while the
/// table was empty reads all of an endpoint's rows for each of them.
pub(in crate::postgres) const DUE: &str = select!(
    "endpoints e CROSS JOIN LATERAL ( \
        SELECT one.* FROM outbox one WHERE one.endpoint = e.id \
            AND one.standing IN ('pending', 'leased') AND one.due_at_ms <= $1::bigint \
            AND one.number = (SELECT first.number FROM outbox first \
                WHERE first.endpoint = one.endpoint AND first.job = one.job \
                AND first.standing IN ('pending', 'leased') ORDER BY first.number LIMIT 1) \
        ORDER BY one.due_at_ms, one.number LIMIT $2::bigint FOR UPDATE OF one SKIP LOCKED) o"
);
/// Not locked: servers that lease at the same moment may lease a few more than an endpoint's limit.
const BUSY: &str = "SELECT count(*), endpoint FROM outbox WHERE standing = 'leased' \
    AND due_at_ms > $1::bigint GROUP BY endpoint";
pub(in crate::postgres) const NEXT: &str = "SELECT number, endpoint, due_at_ms FROM outbox \
    WHERE standing IN ('pending', 'leased') AND due_at_ms > $1::bigint \
    ORDER BY due_at_ms LIMIT $2::bigint";
/// What a row tells is written once.
const PUT: &str = "INSERT INTO outbox (number, endpoint, job, submission, event, token, seq, \
    at_ms, body, standing, lease_id, due_at_ms, tries, queued_at_ms, last) \
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], \
        $6::bigint[], $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::bytea[], \
        $12::bigint[], $13::bigint[], $14::bigint[], $15::text[]) \
    ON CONFLICT (number) DO UPDATE SET standing = excluded.standing, \
    lease_id = excluded.lease_id, due_at_ms = excluded.due_at_ms, tries = excluded.tries, \
    queued_at_ms = excluded.queued_at_ms, last = excluded.last";
const DROP_OF: &str = "DELETE FROM outbox WHERE endpoint = ANY($1::text[])";
const PUT_ENDPOINTS: &str = "INSERT INTO endpoints (id, tenant, url, endpoint) \
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) \
    ON CONFLICT (id) DO UPDATE SET endpoint = excluded.endpoint";
const DROP_ENDPOINTS: &str = "DELETE FROM endpoints WHERE id = ANY($1::text[])";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] =
    &[ENDPOINTS, FIND, OPEN_OF_JOBS, DUE, BUSY, NEXT, PUT, DROP_OF, PUT_ENDPOINTS, DROP_ENDPOINTS];

pub(in crate::postgres) fn decode(row: &Row) -> Result<Delivery, Fault> {
    let columns = Columns::new("notification", row);
    let token: Option<i64> = columns.get(5)?;
    let last = columns.get::<Option<&str>>(14)?.is_some();
    let standing = match columns.text(9)? {
        "pending" => Standing::Pending,
        "leased" => Standing::Leased(columns.lease_id(10)?),
        "delivered" => Standing::Delivered,
        "dead" => Standing::Dead,
        other => return Err(columns.corrupt(9, format!("no standing is called {other:?}"))),
    };
    let tries = columns.unsigned(12)?;
    Ok(Delivery {
        number: columns.number(0)?,
        endpoint: columns.parsed(1)?,
        notice: Notice {
            event: columns.parsed(4)?,
            job: columns.job(2)?,
            submission: columns.number(3)?,
            token: token.map(|_| columns.number(5)).transpose()?,
            seq: columns.number(6)?,
            at: columns.instant(7)?,
            body: columns.get(8)?,
        },
        standing,
        due_at: columns.instant(11)?,
        tries: u32::try_from(tries).map_err(|error| columns.corrupt(12, error))?,
        queued_at: columns.instant(13)?,
        last: if last { Some(columns.json(14)?) } else { None },
    })
}

pub(in crate::postgres) fn decode_endpoint(row: &Row) -> Result<Endpoint, Fault> {
    Columns::new("endpoint", row).json(0)
}

/// Decodes how many of whose are tried.
pub(in crate::postgres) fn decode_busy(row: &Row) -> Result<(EndpointId, usize), Fault> {
    let columns = Columns::new("notification", row);
    let count = usize::try_from(columns.unsigned(0)?).unwrap_or(usize::MAX);
    Ok((columns.parsed(1)?, count))
}

/// A row that becomes due.
pub(in crate::postgres) type Coming = (Number, EndpointId, Timestamp);

pub(in crate::postgres) fn decode_next(row: &Row) -> Result<Coming, Fault> {
    let columns = Columns::new("notification", row);
    Ok((columns.number(0)?, columns.parsed(1)?, columns.instant(2)?))
}

pub(in crate::postgres) fn endpoints(client: &Client) -> Question<'_> {
    question!(client, ENDPOINTS)
}

pub(in crate::postgres) fn find(client: &Client, numbers: Vec<i64>) -> Question<'_> {
    question!(client, FIND, numbers)
}

pub(in crate::postgres) fn open_of_jobs<'a>(
    client: &'a Client,
    of: &[(EndpointId, JobId)],
) -> Question<'a> {
    question!(
        client,
        OPEN_OF_JOBS,
        of.iter().map(|(endpoint, _)| endpoint.to_string()).collect::<Vec<_>>(),
        of.iter().map(|(_, job)| number(job.0)).collect::<Vec<_>>(),
    )
}

pub(in crate::postgres) fn due(client: &Client, now: i64, limit: i64) -> Question<'_> {
    question!(client, DUE, now, limit)
}

pub(in crate::postgres) fn busy(client: &Client, now: i64) -> Question<'_> {
    question!(client, BUSY, now)
}

pub(in crate::postgres) fn next(client: &Client, now: i64, limit: i64) -> Question<'_> {
    question!(client, NEXT, now, limit)
}

/// Rows, new or changed.
pub(in crate::postgres) fn put<'a>(client: &'a Client, rows: &[&Delivery]) -> Question<'a> {
    let lease_id = |row: &Delivery| match row.standing {
        Standing::Leased(lease_id) => Some(lease_id.0.to_be_bytes().to_vec()),
        Standing::Pending | Standing::Delivered | Standing::Dead => None,
    };
    question!(
        client,
        PUT,
        rows.iter().map(|row| number(row.number)).collect::<Vec<_>>(),
        rows.iter().map(|row| row.endpoint.to_string()).collect::<Vec<_>>(),
        rows.iter().map(|row| number(row.notice.job.0)).collect::<Vec<_>>(),
        rows.iter().map(|row| number(row.notice.submission)).collect::<Vec<_>>(),
        rows.iter().map(|row| row.notice.event.as_str()).collect::<Vec<_>>(),
        rows.iter().map(|row| row.notice.token.map(number)).collect::<Vec<_>>(),
        rows.iter().map(|row| number(row.notice.seq)).collect::<Vec<_>>(),
        rows.iter().map(|row| instant(row.notice.at)).collect::<Vec<_>>(),
        rows.iter().map(|row| row.notice.body.clone()).collect::<Vec<_>>(),
        rows.iter().map(|row| row.standing.as_str()).collect::<Vec<_>>(),
        rows.iter().map(|row| lease_id(row)).collect::<Vec<_>>(),
        rows.iter().map(|row| instant(row.due_at)).collect::<Vec<_>>(),
        rows.iter().map(|row| int(u64::from(row.tries))).collect::<Vec<_>>(),
        rows.iter().map(|row| instant(row.queued_at)).collect::<Vec<_>>(),
        rows.iter().map(|row| row.last.as_ref().map(json)).collect::<Vec<_>>(),
    )
}

/// Drops all rows of endpoints.
pub(in crate::postgres) fn drop_of(client: &Client, endpoints: Vec<String>) -> Question<'_> {
    question!(client, DROP_OF, endpoints)
}

/// Endpoints, new or changed.
pub(in crate::postgres) fn put_endpoints<'a>(
    client: &'a Client,
    endpoints: &[&Endpoint],
) -> Question<'a> {
    question!(
        client,
        PUT_ENDPOINTS,
        endpoints.iter().map(|endpoint| endpoint.id.to_string()).collect::<Vec<_>>(),
        endpoints.iter().map(|endpoint| endpoint.tenant.to_string()).collect::<Vec<_>>(),
        endpoints.iter().map(|endpoint| endpoint.url.clone()).collect::<Vec<_>>(),
        endpoints.iter().map(|&endpoint| json(endpoint)).collect::<Vec<_>>(),
    )
}

pub(in crate::postgres) fn drop_endpoints(client: &Client, ids: Vec<String>) -> Question<'_> {
    question!(client, DROP_ENDPOINTS, ids)
}
