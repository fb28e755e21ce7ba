//! A fenced object: a mutable name that points at immutable bytes, guarded by a fence.
//!
//! "Storage records the highest token seen and rejects lower ones", in its general form. The store
//! knows who was granted what, so a holder whose lease has gone to another is refused from the
//! moment of that grant, not only once the new holder has written.

mod publish;
mod write;

#[cfg(test)]
mod tests;

pub use publish::{Published, publish};
pub use write::{Condition, Standing, Write, Written, raise, write};

use serde::{Deserialize, Serialize};

use crate::{Digest, JobId, LeaseId, Number, ObjectKey, Timestamp};

/// An object's record. It outlives what it guards: a deleted object keeps its fence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its name.
    pub key: ObjectKey,
    /// Which numbers guard it; fixed by its first write.
    pub kind: NumberKind,
    /// The lowest number still accepted. Invariant: never falls.
    pub fence: Number,
    /// Its last write, or raise.
    pub last: LastWrite,
    /// What it points at. None: a tombstone, or a name that was only ever raised.
    pub content: Option<Content>,
}

/// Which of the counter's numbers guard a name. A grant's token and a submission's number say
/// different things about what is newer, so a name is guarded by one kind alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberKind {
    /// Fencing tokens: workers and lock holders write for themselves.
    Grants,
    /// Submissions' numbers: publications.
    Submissions,
}

impl NumberKind {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grants => "grants",
            Self::Submissions => "submissions",
        }
    }
}

/// What an object points at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// One blob.
    Blob {
        /// Its bytes.
        digest: Digest,
        /// The generation that was present at the write.
        generation: Number,
        /// Their length.
        size_bytes: u64,
        /// Their media type.
        media_type: String,
    },
    /// All outputs of a job's completion, so that a folder is never half old, half new.
    Manifest {
        /// The job.
        job: JobId,
        /// The token that completed it: a fact, not what is compared.
        token: Number,
    },
}

/// The last write of an object: what a repeat of it is answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWrite {
    /// The number that wrote.
    pub number: Number,
    /// Whose write it was; None for a publication.
    pub lease_id: Option<LeaseId>,
    /// Which of that holder's writes.
    pub op: u64,
    /// What was asked for.
    pub intent: Intent,
    /// The version that it made, from the store-wide counter: an `ETag` names this, not the bytes.
    pub version: Number,
    /// When.
    #[serde(rename = "at_ms")]
    pub at: Timestamp,
}

/// What a write asked for, as far as a repeat of it must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// These bytes.
    Put(Digest),
    /// A tombstone.
    Delete,
    /// The fence alone.
    Raise,
    /// A job's manifest.
    Publish(JobId),
}

impl Object {
    /// Whether there is something to read.
    pub fn is_readable(&self) -> bool {
        self.content.is_some()
    }
}
