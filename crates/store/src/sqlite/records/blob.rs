//! A blob's row, and what keeps it.

use palisade_core::{
    Digest, Number,
    blob::{Blob, BlobState},
};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, instant, int, number},
    tables::Keeper,
};

fn state_word(state: BlobState) -> &'static str {
    match state {
        BlobState::Uploading => "uploading",
        BlobState::Present => "present",
        BlobState::Condemned => "condemned",
    }
}

/// A digest's newest generation.
pub(in crate::sqlite) fn newest(
    connection: &Connection,
    digest: Digest,
) -> Result<Option<Blob>, Fault> {
    let sql = "SELECT generation, state, size_bytes FROM blobs WHERE digest = ?1 \
               ORDER BY generation DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    let mut rows = statement.query([digest.as_bytes()]).map_err(fault)?;
    let Some(row) = rows.next().map_err(fault)? else { return Ok(None) };
    let columns = Columns::new("blob", row);
    let size: Option<i64> = columns.get(2)?;
    Ok(Some(Blob {
        digest,
        generation: columns.number(0)?,
        state: columns.word(1)?,
        size_bytes: size.map(|_| columns.unsigned(2)).transpose()?,
    }))
}

/// Writes a generation's row, new or changed.
pub(in crate::sqlite) fn write(connection: &Connection, blob: &Blob) -> Result<(), Fault> {
    let sql = "INSERT INTO blobs (generation, digest, state, size_bytes) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (generation) DO UPDATE \
               SET state = excluded.state, size_bytes = excluded.size_bytes";
    let values = params![
        number(blob.generation),
        blob.digest.as_bytes(),
        state_word(blob.state),
        blob.size_bytes.map(int)
    ];
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(values).map(drop).map_err(fault)
}

pub(in crate::sqlite) fn keeper_columns(keeper: &Keeper) -> (&'static str, i64) {
    match keeper {
        Keeper::Output(job) => ("output", number(job.0)),
        Keeper::Input(job) => ("input", number(job.0)),
        Keeper::Attempt(token) => ("attempt", number(*token)),
        Keeper::Until(at) => ("until", instant(*at)),
        Keeper::Object(version) => ("object", number(*version)),
    }
}

/// Keeps a generation. Repeated, it stands once.
pub(in crate::sqlite) fn keep(
    connection: &Connection,
    generation: Number,
    keeper: &Keeper,
) -> Result<(), Fault> {
    let sql = "INSERT INTO keepers (generation, kind, keeper) VALUES (?1, ?2, ?3) \
               ON CONFLICT DO NOTHING";
    let (kind, keeper) = keeper_columns(keeper);
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(params![number(generation), kind, keeper]).map(drop).map_err(fault)
}

/// Drops everything that this keeper keeps. Answers how much.
pub(in crate::sqlite) fn drop_keeper(
    connection: &Connection,
    keeper: &Keeper,
) -> Result<usize, Fault> {
    let passing = "DELETE FROM keepers WHERE kind = ?1 AND keeper = ?2 \
                   AND kind IN ('attempt', 'until', 'object')";
    let lasting = "DELETE FROM keepers WHERE kind = ?1 AND keeper = ?2";
    let (kind, id) = keeper_columns(keeper);
    let sql = match keeper {
        Keeper::Attempt(_) | Keeper::Until(_) | Keeper::Object(_) => passing,
        Keeper::Output(_) | Keeper::Input(_) => lasting,
    };
    let mut statement = connection.prepare_cached(sql).map_err(fault)?;
    statement.execute(params![kind, id]).map_err(fault)
}
