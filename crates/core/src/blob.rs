//! A blob's row: which generation of its bytes may be named.
//!
//! The collector is a process that can pause too, and object stores delete without a condition.
//! So a blob's place is `digest/generation`, and a place is never named again once condemned.

pub mod collect;

use serde::{Deserialize, Serialize};

use crate::{Digest, Number, refusal::Refusal};

/// Where one generation of a blob stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlobState {
    /// Somebody is bringing it. An upload that ends moves it to `present`.
    Uploading,
    /// Whole and durable; a commit may name it. The collector moves it to `condemned`.
    Present,
    /// Given up: a tombstone until no late upload to its place is possible.
    Condemned,
}

/// One generation of a blob.
///
/// Invariant: a digest has at most one generation that is not condemned, its newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// The name of the bytes.
    pub digest: Digest,
    /// From the store-wide counter, so that a place never comes back.
    pub generation: Number,
    /// State.
    pub state: BlobState,
    /// Its length. Known once present.
    pub size_bytes: Option<u64>,
}

/// What somebody who wants to bring a blob is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// It is there already, and pinned.
    Exists,
    /// Write it to this generation's place, then say so.
    Upload,
}

/// Begins an upload. `newest` is the digest's newest generation; `fresh` a number just drawn.
///
/// Two uploaders may share a generation: they bring the same bytes to the same place, and neither
/// replaces what the other has linked there.
///
/// # Panics
/// When a fresh number is needed and is not above the condemned generation's: a place would come
/// back, and with it what a paused collector is about to delete.
pub fn begin(newest: Option<Blob>, digest: Digest, fresh: Number) -> (Blob, Begin) {
    match newest {
        Some(blob) if blob.state == BlobState::Present => (blob, Begin::Exists),
        Some(blob) if blob.state == BlobState::Uploading => (blob, Begin::Upload),
        Some(_) | None => {
            let condemned = newest.map_or(Number::ZERO, |blob| blob.generation);
            assert!(fresh > condemned, "the counter went backwards");
            let state = BlobState::Uploading;
            (Blob { digest, generation: fresh, state, size_bytes: None }, Begin::Upload)
        }
    }
}

/// Marks an upload's end. Only an uploading blob of that very generation becomes present; else the
/// upload has to start again. Repeated, it answers the same, whatever length is told then.
pub fn finish(
    newest: Option<Blob>,
    digest: Digest,
    generation: Number,
    size_bytes: u64,
) -> Result<Blob, Refusal> {
    match newest {
        Some(blob) if blob.generation == generation => match blob.state {
            BlobState::Uploading => {
                Ok(Blob { state: BlobState::Present, size_bytes: Some(size_bytes), ..blob })
            }
            BlobState::Present => Ok(blob),
            BlobState::Condemned => Err(Refusal::StaleGeneration { digest, generation }),
        },
        Some(_) | None => Err(Refusal::StaleGeneration { digest, generation }),
    }
}

#[cfg(test)]
mod tests;
