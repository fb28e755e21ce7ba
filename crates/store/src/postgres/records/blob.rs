//! A blob's row, and what keeps it.

use std::collections::BTreeSet;

use deadpool_postgres::Client;
use palisade_core::{
    Digest, Number, Timestamp,
    blob::{Blob, BlobState},
};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        overlay::Keeping,
        session::{Question, question},
        values::{Columns, count, instant, int, number},
    },
    tables::Keeper,
};

/// The newest generation of each digest. Shared: many submissions name the same input, but whoever
/// condemns it waits for them.
const NEWEST: &str = "SELECT b.generation, b.digest, b.state, b.size_bytes \
    FROM unnest($1::bytea[]) AS w (digest) CROSS JOIN LATERAL ( \
        SELECT generation, digest, state, size_bytes FROM blobs WHERE digest = w.digest \
        ORDER BY generation DESC LIMIT 1 FOR SHARE) b";
const INSERT: &str = "INSERT INTO blobs (generation, digest, state, size_bytes) \
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::bigint[])";
/// A place is never named again once condemned, and what is present stays so until then.
const UPDATE: &str = "WITH written AS (UPDATE blobs b SET state = n.state, \
        size_bytes = n.size_bytes \
    FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::bigint[]) \
        AS n (generation, digest, state, size_bytes) \
    WHERE b.generation = n.generation AND b.digest = n.digest \
        AND (b.state <> 'condemned' OR n.state = 'condemned') \
        AND (b.state <> 'present' OR n.state <> 'uploading') RETURNING 1) \
    SELECT palisade_expect(count(*), $5::bigint, 'blobs') FROM written";
const KEEP: &str = "INSERT INTO keepers (generation, kind, keeper) \
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[]) ON CONFLICT DO NOTHING";
const DROP_PASSING: &str = "DELETE FROM keepers k USING unnest($1::text[], $2::bigint[]) \
    AS d (kind, keeper) WHERE k.kind = d.kind AND k.keeper = d.keeper \
    AND k.kind IN ('attempt', 'until', 'object')";
const DROP_LASTING: &str = "DELETE FROM keepers k USING unnest($1::text[], $2::bigint[]) \
    AS d (kind, keeper) WHERE k.kind = d.kind AND k.keeper = d.keeper \
    AND k.kind IN ('output', 'input')";
/// By the rows of their digests, for keepers that last have no index of their own.
const UNKEEP: &str = "DELETE FROM keepers k USING \
    unnest($1::bytea[], $2::text[], $3::bigint[]) AS d (digest, kind, keeper) \
    JOIN blobs b ON b.digest = d.digest \
    WHERE k.generation = b.generation AND k.kind = d.kind AND k.keeper = d.keeper";
const DROP_PASSED: &str = "DELETE FROM keepers WHERE kind = 'until' AND keeper <= $1::bigint \
    AND kind IN ('attempt', 'until', 'object')";
/// Only a tombstone: a trigger refuses what may still be named.
const FORGET: &str = "DELETE FROM blobs WHERE generation = ANY($1::bigint[])";

/// What is introduced to each connection.
pub(in crate::postgres) const ALL: &[&str] =
    &[NEWEST, INSERT, UPDATE, KEEP, DROP_PASSING, DROP_LASTING, UNKEEP, DROP_PASSED, FORGET];

pub(in crate::postgres) fn decode(row: &Row) -> Result<Blob, Fault> {
    let columns = Columns::new("blob", row);
    Ok(Blob {
        digest: columns.digest(1)?,
        generation: columns.number(0)?,
        state: columns.word(2)?,
        size_bytes: columns.optional_unsigned(3)?,
    })
}

pub(in crate::postgres) fn newest(client: &Client, digests: Vec<Vec<u8>>) -> Question<'_> {
    question!(client, NEWEST, digests)
}

pub(in crate::postgres) fn insert<'a>(client: &'a Client, blobs: &[&Blob]) -> Question<'a> {
    let (generations, digests, states, sizes) = columns(blobs);
    question!(client, INSERT, generations, digests, states, sizes)
}

pub(in crate::postgres) fn update<'a>(client: &'a Client, blobs: &[&Blob]) -> Question<'a> {
    let (generations, digests, states, sizes) = columns(blobs);
    question!(client, UPDATE, generations, digests, states, sizes, count(blobs.len()))
}

type BlobColumns = (Vec<i64>, Vec<Vec<u8>>, Vec<&'static str>, Vec<Option<i64>>);

fn columns(blobs: &[&Blob]) -> BlobColumns {
    (
        blobs.iter().map(|blob| number(blob.generation)).collect(),
        blobs.iter().map(|blob| blob.digest.as_bytes().to_vec()).collect(),
        blobs.iter().map(|blob| state_word(blob.state)).collect(),
        blobs.iter().map(|blob| blob.size_bytes.map(int)).collect(),
    )
}

fn state_word(state: BlobState) -> &'static str {
    match state {
        BlobState::Uploading => "uploading",
        BlobState::Present => "present",
        BlobState::Condemned => "condemned",
    }
}

fn keeper_columns(keeper: &Keeper) -> (&'static str, i64) {
    match keeper {
        Keeper::Output(job) => ("output", number(job.0)),
        Keeper::Input(job) => ("input", number(job.0)),
        Keeper::Attempt(token) => ("attempt", number(*token)),
        Keeper::Until(at) => ("until", instant(*at)),
        Keeper::Object(version) => ("object", number(*version)),
    }
}

/// Forgets generations.
pub(in crate::postgres) fn forget(client: &Client, generations: Vec<i64>) -> Question<'_> {
    question!(client, FORGET, generations)
}

/// Who is dropped and what is kept, when all changes are taken together.
#[derive(Default)]
struct Changes {
    kept: BTreeSet<(Digest, Number, Keeper)>,
    dropped: BTreeSet<Keeper>,
    unkept: BTreeSet<(Digest, Keeper)>,
    passed: Option<Timestamp>,
}

impl Changes {
    fn take_in(&mut self, change: &Keeping) {
        let Self { kept, dropped, unkept, passed } = self;
        match change {
            Keeping::Keep(digest, generation, keeper) => {
                kept.insert((*digest, *generation, keeper.clone()));
            }
            Keeping::Drop(gone) => {
                kept.retain(|(_, _, keeper)| keeper != gone);
                dropped.insert(gone.clone());
            }
            Keeping::Unkeep(of, gone) => {
                kept.retain(|(digest, _, keeper)| digest != of || keeper != gone);
                unkept.insert((*of, gone.clone()));
            }
            Keeping::DropPassed(now) => {
                kept.retain(|(_, _, keeper)| !change.drops(keeper));
                *passed = Some(passed.map_or(*now, |before| before.max(*now)));
            }
        }
    }
}

/// What all changes of keepers come to: first who is dropped, then what is kept.
pub(in crate::postgres) fn keepers<'a>(
    client: &'a Client,
    changes: &[Keeping],
) -> Vec<Question<'a>> {
    let mut all = Changes::default();
    for change in changes {
        all.take_in(change);
    }
    let Changes { kept, dropped, unkept, passed } = all;
    let mut questions = Vec::new();
    let (lasting, passing): (Vec<_>, Vec<_>) = dropped
        .iter()
        .map(keeper_columns)
        .partition(|(kind, _)| matches!(*kind, "output" | "input"));
    for (sql, dropped) in [(DROP_PASSING, passing), (DROP_LASTING, lasting)] {
        if !dropped.is_empty() {
            let (kinds, keepers): (Vec<_>, Vec<_>) = dropped.into_iter().unzip();
            questions.push(question!(client, sql, kinds, keepers));
        }
    }
    if !unkept.is_empty() {
        let digests: Vec<_> = unkept.iter().map(|(of, _)| of.as_bytes().to_vec()).collect();
        let (kinds, keepers): (Vec<_>, Vec<_>) =
            unkept.iter().map(|(_, keeper)| keeper_columns(keeper)).unzip();
        questions.push(question!(client, UNKEEP, digests, kinds, keepers));
    }
    if let Some(now) = passed {
        questions.push(question!(client, DROP_PASSED, instant(now)));
    }
    if !kept.is_empty() {
        let generations: Vec<_> = kept.iter().map(|(_, at, _)| number(*at)).collect();
        let (kinds, keepers): (Vec<_>, Vec<_>) =
            kept.iter().map(|(_, _, keeper)| keeper_columns(keeper)).unzip();
        questions.push(question!(client, KEEP, generations, kinds, keepers));
    }
    questions
}
