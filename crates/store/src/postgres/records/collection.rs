//! What is in the collector's hands.

use deadpool_postgres::Client;
use palisade_core::{
    JobId, Number,
    blob::collect::{Case, Stage},
};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        session::{Question, question},
        values::{Columns, instant, number},
    },
    tables::Keeper,
};

/// Locked: whoever wants to keep one of them waits, and so does who keeps one already, so that no
/// keeper is overlooked.
const GENERATIONS: &str = "SELECT generation, digest, state, size_bytes FROM blobs \
    WHERE generation = ANY($1::bigint[]) ORDER BY generation FOR UPDATE";
const KEPT: &str = "SELECT w.generation, k.kind, k.keeper \
    FROM unnest($1::bigint[], $2::bigint[]) AS w (generation, asked) CROSS JOIN LATERAL ( \
        SELECT kind, keeper FROM keepers WHERE generation = w.generation LIMIT w.asked) k";
const FIND: &str = "SELECT generation, digest, stage, since_ms FROM collection \
    WHERE generation = ANY($1::bigint[]) ORDER BY generation FOR UPDATE";
const PUT: &str = "INSERT INTO collection (generation, digest, stage, since_ms) \
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::bigint[]) \
    ON CONFLICT (generation) DO UPDATE SET stage = excluded.stage, since_ms = excluded.since_ms";
const DROP: &str = "DELETE FROM collection WHERE generation = ANY($1::bigint[])";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] = &[GENERATIONS, KEPT, FIND, PUT, DROP];

/// A stage as its column holds it.
pub(in crate::postgres) fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Idle => "idle",
        Stage::Condemned => "condemned",
        Stage::Cleared => "cleared",
    }
}

/// Decodes `generation, digest, stage, since_ms`.
pub(in crate::postgres) fn decode(row: &Row) -> Result<Case, Fault> {
    let columns = Columns::new("collection", row);
    Ok(Case {
        generation: columns.number(0)?,
        digest: columns.digest(1)?,
        stage: columns.word(2)?,
        since: columns.instant(3)?,
    })
}

/// Decodes `generation, kind, keeper`.
pub(in crate::postgres) fn decode_kept(row: &Row) -> Result<(Number, Keeper), Fault> {
    let columns = Columns::new("keeper", row);
    let keeper = match columns.text(1)? {
        "output" => Keeper::Output(JobId(columns.number(2)?)),
        "input" => Keeper::Input(JobId(columns.number(2)?)),
        "attempt" => Keeper::Attempt(columns.number(2)?),
        "until" => Keeper::Until(columns.instant(2)?),
        "object" => Keeper::Object(columns.number(2)?),
        other => return Err(columns.corrupt(1, format!("no keeper is called {other:?}"))),
    };
    Ok((columns.number(0)?, keeper))
}

pub(in crate::postgres) fn generations(client: &Client, generations: Vec<i64>) -> Question<'_> {
    question!(client, GENERATIONS, generations)
}

/// Up to so many keepers of each generation.
pub(in crate::postgres) fn kept(
    client: &Client,
    generations: Vec<i64>,
    asked: Vec<i64>,
) -> Question<'_> {
    question!(client, KEPT, generations, asked)
}

pub(in crate::postgres) fn find(client: &Client, generations: Vec<i64>) -> Question<'_> {
    question!(client, FIND, generations)
}

/// Cases, new or moved on.
pub(in crate::postgres) fn put<'a>(client: &'a Client, cases: &[&Case]) -> Question<'a> {
    question!(
        client,
        PUT,
        cases.iter().map(|case| number(case.generation)).collect::<Vec<_>>(),
        cases.iter().map(|case| case.digest.as_bytes().to_vec()).collect::<Vec<_>>(),
        cases.iter().map(|case| stage_word(case.stage)).collect::<Vec<_>>(),
        cases.iter().map(|case| instant(case.since)).collect::<Vec<_>>(),
    )
}

/// Closes cases.
pub(in crate::postgres) fn drop_cases(client: &Client, generations: Vec<i64>) -> Question<'_> {
    question!(client, DROP, generations)
}
