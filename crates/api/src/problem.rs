//! Refusals on the wire: problem+json (RFC 9457) with a stable `code`.

use std::collections::BTreeMap;

use palisade_core::{Digest, Invalid, Refusal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The media type of a [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request was not done. `code` is part of the public contract, `detail` is for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The stable code: `stale_token`, `invalid`, `unavailable`, …
    pub code: String,
    /// The status in words.
    pub title: String,
    /// What happened, naming field, value and what is allowed.
    pub detail: String,
    /// Facts of the code: `fence`, `reason`, `completed_by`, `field`, `allowed`, `digests`, …
    #[serde(flatten)]
    pub facts: BTreeMap<String, Value>,
}

impl Problem {
    /// A problem without facts.
    pub fn new(status: u16, code: &str, detail: impl Into<String>) -> Self {
        let title = title(status).to_owned();
        let (code, detail) = (code.to_owned(), detail.into());
        Self { status, code, title, detail, facts: BTreeMap::new() }
    }

    /// The same with one fact more.
    #[must_use]
    pub fn with(mut self, name: &str, fact: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), fact.into());
        self
    }

    /// Nothing was done; it may be asked again.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(503, "unavailable", detail)
    }

    /// It may have been done; ask again with the same ids.
    pub fn unknown(detail: impl Into<String>) -> Self {
        Self::new(503, "unknown", detail)
    }
}

/// The status of each refusal's code, in one table.
pub fn status_of(code: &str) -> u16 {
    match code {
        "stale_token" | "stale_op" => 412,
        "already_complete" | "held" | "wrong_kind" | "wrong_state" | "newer_job"
        | "stale_generation" => 409,
        "lease_lost" => 410,
        "unknown_token" | "missing_blob" | "invalid" => 422,
        "op_required" => 428,
        "not_found" => 404,
        "unavailable" | "unknown" => 503,
        _ => 500,
    }
}

fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        422 => "Unprocessable Content",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        _ => "Internal Server Error",
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self::new(422, "invalid", invalid.to_string())
            .with("field", invalid.field)
            .with("value", invalid.value)
            .with("allowed", invalid.allowed)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code();
        let problem = Self::new(status_of(code), code, refusal.to_string());
        match refusal {
            Refusal::StaleToken { fence, reason, completed_by } => {
                let problem = problem.with("fence", fence.get()).with("reason", reason.as_str());
                match completed_by {
                    Some(token) => problem.with("completed_by", token.get()),
                    None => problem,
                }
            }
            Refusal::AlreadyComplete { completed_by } => {
                problem.with("completed_by", completed_by.get())
            }
            Refusal::UnknownToken { token, subject } => {
                problem.with("token", token.get()).with("subject", subject)
            }
            Refusal::MissingBlob { field, digests } => {
                let digests: Vec<_> = digests.iter().map(Digest::to_string).collect();
                problem.with("field", field).with("digests", json!(digests))
            }
            Refusal::NotFound { what, id } => problem.with("what", what).with("id", id),
            Refusal::WrongState { job, state, allowed } => problem
                .with("job", job.to_string())
                .with("state", state.as_str())
                .with("allowed", allowed),
            Refusal::NewerJob { job } => problem.with("job", job.to_string()),
            Refusal::StaleGeneration { digest, generation } => {
                problem.with("digest", digest.to_string()).with("generation", generation.get())
            }
            Refusal::Invalid(invalid) => invalid.into(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.detail, self.code)
    }
}

impl std::error::Error for Problem {}
