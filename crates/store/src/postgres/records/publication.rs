//! The list of publications that are due.

use deadpool_postgres::Client;
use palisade_core::{JobId, Number};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::Columns,
    },
};

/// By rising number, with their jobs. What another server has is passed over.
const DUE: &str = "SELECT j.id, j.version, j.record, j.released, p.submission \
    FROM publications_due p JOIN jobs j ON j.id = p.job ORDER BY p.submission \
    LIMIT $1::bigint FOR UPDATE SKIP LOCKED";
const PUT: &str = "INSERT INTO publications_due (submission, job) \
    SELECT * FROM unnest($1::bigint[], $2::bigint[]) ON CONFLICT DO NOTHING";
const DROP: &str = "DELETE FROM publications_due WHERE submission = ANY($1::bigint[])";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[DUE, PUT, DROP];

/// Decodes a submission and its job; the job's row comes before.
pub(in crate::postgres) fn decode(row: &Row) -> Result<(Number, JobId), Fault> {
    let columns = Columns::new("publication due", row);
    Ok((columns.number(4)?, columns.job(0)?))
}

pub(in crate::postgres) fn due(client: &Client, limit: i64) -> Question<'_> {
    question!(client, DUE, limit)
}

pub(in crate::postgres) fn put(
    client: &Client,
    submissions: Vec<i64>,
    jobs: Vec<i64>,
) -> Question<'_> {
    question!(client, PUT, submissions, jobs)
}

pub(in crate::postgres) fn drop_due(client: &Client, submissions: Vec<i64>) -> Question<'_> {
    question!(client, DROP, submissions)
}
