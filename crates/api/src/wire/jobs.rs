//! Submitting, and what is done to a job.

use std::collections::BTreeMap;

use palisade_core::manifest::Manifest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Problem;

/// `POST /v1/jobs`: a wish for a rendering.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmitRequest {
    /// A recipe of the server's book.
    pub recipe: String,
    /// Inputs by the name that the recipe declares. Their bytes must be uploaded before.
    #[serde(default)]
    pub inputs: BTreeMap<String, InputWire>,
    /// Parameters that the recipe declares: strings, numbers or booleans.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// Asked again with it, the first answer is given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Render again, even if it was rendered already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// Higher goes first; -100 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i16>,
    /// Not before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at_ms: Option<u64>,
    /// After how long a second attempt may run beside the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_after_ms: Option<u64>,
    /// The name under which the outputs are to be published: a fenced object's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<String>,
    /// Whose it is; the default tenant if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputWire {
    /// Its bytes.
    pub digest: String,
    /// Their length.
    pub size_bytes: u64,
    /// What the customer calls it, for people alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// `POST /v1/jobs` with several wishes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmitMany {
    /// The wishes.
    pub jobs: Vec<SubmitRequest>,
}

/// Where a submission went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitResponse {
    /// The job's id.
    pub job: String,
    /// The submission's own number.
    pub submission: u64,
    /// Whether it joined a live job, or was answered from a complete one.
    pub deduplicated: bool,
    /// Whether it was answered from a complete one.
    pub cached: bool,
}

/// One answer of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SubmitResult {
    /// It was recorded.
    Submitted(SubmitResponse),
    /// It was refused; its neighbours were not.
    Refused {
        /// Why.
        error: Problem,
    },
}

/// The answers to several wishes, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubmitManyResponse {
    /// One a wish.
    pub results: Vec<SubmitResult>,
}

/// A token and its lease id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairWire {
    /// The fencing token.
    pub token: u64,
    /// The lease id.
    pub lease: String,
}

/// `POST /v1/jobs/{id}/complete`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompleteRequest {
    /// The fencing token.
    pub token: u64,
    /// The lease id.
    pub lease: String,
    /// What was made. Its blobs must be uploaded before.
    pub manifest: Manifest,
}

/// The committed record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompleteResponse {
    /// The token that completed the job.
    pub completed_by: u64,
    /// When.
    pub completed_at_ms: u64,
    /// Whether this is the recorded answer to a complete that came with other outputs.
    pub manifest_differs: bool,
    /// The recorded outputs.
    pub manifest: Manifest,
}

/// `POST /v1/jobs/{id}/fail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailRequest {
    /// The fencing token.
    pub token: u64,
    /// The lease id.
    pub lease: String,
    /// A stable word for the cause.
    pub reason: String,
    /// What happened, in a person's words.
    pub message: String,
    /// Whether another try cannot help.
    #[serde(default, rename = "final")]
    pub is_final: bool,
}

/// `POST /v1/jobs/{id}/release`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// The fencing token.
    pub token: u64,
    /// The lease id.
    pub lease: String,
}

/// What became of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequeuedResponse {
    /// Its state.
    pub state: String,
    /// For `queued`: not before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at_ms: Option<u64>,
}

/// `POST /v1/jobs/{id}/cancel`: names a submission, or all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// The submission to withdraw. May be left out where there is one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<u64>,
    /// Withdraw all of them: for operators.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Asked again with it, nothing is done a second time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What a cancel came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelResponse {
    /// How many submissions it withdrew.
    pub withdrawn: usize,
    /// The job's state afterwards.
    pub state: String,
}

/// `POST /v1/jobs/{id}/retry`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// For a cancelled job: the submission to revive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<u64>,
    /// Asked again with it, nothing is done a second time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What a retry came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryResponse {
    /// The job's state afterwards.
    pub state: String,
}
