//! Bringing blobs: rows, generations, pins.

use palisade_core::{
    JobId, Refusal,
    blob::{self, Begin, Blob, BlobState},
    lease::{Moment, Pair},
};

use crate::{
    command::{BeginBlob, BlobPlace, FinishBlob, Pin},
    fault::Fault,
    tables::{Keeper, Tables},
};

use super::Outcome;

pub(super) fn begin(tables: &mut dyn Tables, asked: BeginBlob, _now: Moment) -> Outcome<BlobPlace> {
    let keeper = match asked.pin {
        Pin::Until(until) => Keeper::Until(until),
        Pin::Attempt(job, pair) => match open_attempt(tables, job, pair)? {
            Ok(keeper) => keeper,
            Err(refusal) => return Ok(Err(refusal)),
        },
    };
    let newest = tables.blob(asked.digest)?;
    let fresh = tables.draw()?;
    let (blob, begin) = blob::begin(newest, asked.digest, fresh);
    if newest != Some(blob) {
        tables.put_blob(&blob)?;
    }
    // Also when it is there already: whoever counts on it must find it at the commit.
    tables.keep_blob(blob.digest, blob.generation, &keeper)?;
    Ok(Ok(BlobPlace { present: begin == Begin::Exists, ..place(blob) }))
}

pub(super) fn finish(tables: &mut dyn Tables, asked: FinishBlob) -> Outcome<BlobPlace> {
    let newest = tables.blob(asked.digest)?;
    let finished = blob::finish(newest, asked.digest, asked.generation, asked.size_bytes);
    let blob = match finished {
        Ok(blob) => blob,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if newest != Some(blob) {
        tables.put_blob(&blob)?;
    }
    Ok(Ok(place(blob)))
}

fn place(blob: Blob) -> BlobPlace {
    BlobPlace {
        digest: blob.digest,
        generation: blob.generation,
        present: blob.state == BlobState::Present,
        size_bytes: blob.size_bytes,
    }
}

/// A pin of an attempt ends with it, so only an open one can pin.
fn open_attempt(
    tables: &mut dyn Tables,
    job: JobId,
    pair: Pair,
) -> Result<Result<Keeper, Refusal>, Fault> {
    let held = tables.held().get(pair.token);
    if held.is_some_and(|held| held.job == job && held.lease_id == pair.lease_id) {
        return Ok(Ok(Keeper::Attempt(pair.token)));
    }
    let unknown = Refusal::UnknownToken { token: pair.token, subject: job.to_string() };
    let Some(record) = tables.job(job)? else { return Ok(Err(unknown)) };
    let attempt = record.attempt(pair.token);
    let Some(attempt) = attempt.filter(|attempt| attempt.lease_id == pair.lease_id) else {
        return Ok(Err(unknown));
    };
    Ok(match &attempt.closed {
        // The record decides; its lease may just not be known, where it is not logged.
        None => Ok(Keeper::Attempt(pair.token)),
        Some(closed) => Err(Refusal::StaleToken {
            fence: record.fence,
            reason: closed.reason,
            completed_by: record.completed_by(),
        }),
    })
}
