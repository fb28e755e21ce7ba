//! Blobs: bringing them, and what keeps them.

use palisade_core::{Digest, JobId, Number, Timestamp, lease::Pair};

/// What keeps a blob from being collected before a commit names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// Until this attempt is closed. Refused when it is not open.
    Attempt(JobId, Pair),
    /// Until this instant: for inputs, before their job is submitted.
    Until(Timestamp),
}

/// Somebody wants to bring a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeginBlob {
    /// Its name.
    pub digest: Digest,
    /// What keeps it meanwhile, also when it is there already.
    pub pin: Pin,
}

/// A blob's bytes are durable at their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishBlob {
    /// Its name.
    pub digest: Digest,
    /// The generation they were written to.
    pub generation: Number,
    /// Their length.
    pub size_bytes: u64,
}

/// A blob's place, and whether the bytes are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobPlace {
    /// Its name.
    pub digest: Digest,
    /// The generation.
    pub generation: Number,
    /// Whether the bytes are there. If not: write them to `digest/generation`, then finish.
    pub present: bool,
    /// Their length. Known once present.
    pub size_bytes: Option<u64>,
}
