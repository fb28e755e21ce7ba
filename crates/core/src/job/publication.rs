//! Where a submission wants its job's outputs to be published, and what came of that.

use serde::{Deserialize, Serialize};

use crate::{Number, ObjectKey, Timestamp};

/// A wish to have the outputs under a stable name. It belongs to the submission, so a job that
/// several share may be published under several names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// The name.
    pub key: ObjectKey,
    /// What came of it; none: it is not carried out yet. Invariant: decided once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<PublicationOutcome>,
}

/// What came of a publication. It stays, whatever happens to the name afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum PublicationOutcome {
    /// The name pointed at the job's manifest from then on.
    Published {
        /// The version of the object that this made.
        version: Number,
        /// When.
        #[serde(rename = "at_ms")]
        at: Timestamp,
    },
    /// A newer submission had the name: this one came too late, for good.
    Superseded {
        /// The lowest number that the name still accepted.
        fence: Number,
        /// When.
        #[serde(rename = "at_ms")]
        at: Timestamp,
    },
    /// The name is guarded by the numbers of grants.
    WrongKind {
        /// When.
        #[serde(rename = "at_ms")]
        at: Timestamp,
    },
}

impl Publication {
    /// One that is not carried out yet.
    pub const fn pending(key: ObjectKey) -> Self {
        Self { key, outcome: None }
    }
}

impl PublicationOutcome {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published { .. } => "published",
            Self::Superseded { .. } => "superseded",
            Self::WrongKind { .. } => "wrong_kind",
        }
    }
}
