//! What the collector asks.

use palisade_core::{Digest, JobId, Number};

/// Looks at generations that seemed unkept: those that are so for `grace_ms` are condemned. Pins
/// whose time is over are dropped first, also when nothing is asked of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collect {
    /// The generations.
    pub blobs: Vec<(Digest, Number)>,
    /// How long nobody must have kept them, in ms.
    pub grace_ms: u64,
}

/// Places of condemned generations were cleared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkCleared {
    /// The places.
    pub places: Vec<(Digest, Number)>,
}

/// Places were cleared again, `tombstone_ms` after their generation was condemned: it may be
/// forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetBlobs {
    /// The places.
    pub places: Vec<(Digest, Number)>,
    /// How long after its condemnation a late upload may come, in ms.
    pub tombstone_ms: u64,
}

/// The generations that a step was done for; it was not, or had been before, for the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The places.
    pub places: Vec<(Digest, Number)>,
}

/// Jobs that are over for `keep_ms` no longer keep their inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseJobs {
    /// The jobs.
    pub jobs: Vec<JobId>,
    /// How long they keep them, in ms.
    pub keep_ms: u64,
}

/// Jobs that were released; the others are wanted, or had been before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Released {
    /// The jobs.
    pub jobs: Vec<JobId>,
}
