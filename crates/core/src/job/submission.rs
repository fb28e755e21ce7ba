//! A submission: one wish for a job.

use serde::{Deserialize, Serialize};

use crate::{Number, Timestamp, history::Joined};

/// One wish for a job. Several may share it; what is projected belongs to the submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Its own number, from the store-wide counter.
    pub number: Number,
    /// When it was recorded.
    #[serde(rename = "at_ms")]
    pub at: Timestamp,
    /// How it came to the job.
    pub how: Joined,
    /// When it was withdrawn, if it was.
    #[serde(rename = "withdrawn_at_ms", default, skip_serializing_if = "Option::is_none")]
    pub withdrawn_at: Option<Timestamp>,
}
