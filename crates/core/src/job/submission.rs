//! A submission: one wish for a job.

use serde::{Deserialize, Serialize};

use crate::{Number, Timestamp, history::Joined};

use super::Publication;

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
    /// Where it wants the outputs to be published, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<Publication>,
}

impl Submission {
    /// How its publication stands, as a word: what came of it, or `pending`, or `withdrawn` when
    /// nothing will come of it any more. None: it asked for none.
    pub fn publication_state(&self) -> Option<&'static str> {
        let publication = self.publication.as_ref()?;
        Some(match publication.outcome {
            Some(outcome) => outcome.as_str(),
            None if self.withdrawn_at.is_some() => "withdrawn",
            None => "pending",
        })
    }
}
