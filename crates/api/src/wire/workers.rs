//! What a worker in any language needs: claims, heartbeats, pins, its session's stream.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{InputWire, PairWire, ProgressView};

/// `POST /v1/claims`: a worker asks for jobs; a long poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// The worker as its operator calls it.
    pub worker: String,
    /// A random id of this start of the worker.
    pub session: String,
    /// Asked again with it after a lost reply, grants still open are returned and nothing new is
    /// granted.
    pub request_id: String,
    /// The `seq` of the last heartbeat sent before this claim; 0 before the first.
    #[serde(default)]
    pub seq: u64,
    /// The leases' length; 30 s if none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How long to wait for a job; at most 60 s.
    #[serde(default)]
    pub wait_ms: u64,
    /// At most so many jobs; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// What this worker can run.
    pub recipes: Vec<CapabilityWire>,
}

/// A recipe in one definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityWire {
    /// The recipe.
    pub recipe: String,
    /// Its definition's digest.
    pub definition: String,
}

/// What a claim came to; `grants` is empty when nothing came in time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimResponse {
    /// Jobs granted.
    pub grants: Vec<GrantWire>,
    /// For a claim asked again: what was granted to it and lost since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LeaseWire>,
}

/// A job granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantWire {
    /// The job's id.
    pub job: String,
    /// The fencing token: show it, with the lease id, at every effect.
    pub token: u64,
    /// The lease id.
    pub lease: String,
    /// The lease's length, counted from the grant.
    pub ttl_ms: u64,
    /// How long the claim had waited at the server before the grant.
    pub waited_ms: u64,
    /// The recipe.
    pub recipe: String,
    /// Its definition's digest.
    pub definition: String,
    /// Inputs by name.
    pub inputs: BTreeMap<String, InputWire>,
    /// Parameters, complete, in canonical text.
    pub parameters: BTreeMap<String, String>,
    /// Which attempt of the job this is, from 1.
    pub attempt: usize,
}

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseWire {
    /// The job's id.
    pub job: String,
    /// The fencing token.
    pub token: u64,
    /// The lease id.
    pub lease: String,
}

/// `POST /v1/heartbeats`: one for all leases of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatRequest {
    /// The session.
    pub session: String,
    /// Rises with each heartbeat of the session, from 1.
    pub seq: u64,
    /// Every lease that the session has.
    pub leases: Vec<LeaseWire>,
    /// Its claims that are still unanswered, by request id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Pauses measured since the last heartbeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<PauseWire>,
}

/// A pause that a worker measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseWire {
    /// The job's id.
    pub job: String,
    /// The fencing token held meanwhile.
    pub token: u64,
    /// The lease id.
    pub lease: String,
    /// For how long.
    pub pause_ms: u64,
}

/// `POST /v1/progress`: how far the session's renders are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgressRequest {
    /// The session.
    pub session: String,
    /// One a render.
    pub renders: Vec<ProgressWire>,
}

/// How far one render is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressWire {
    /// The job's id.
    pub job: String,
    /// The fencing token.
    pub token: u64,
    /// The lease id.
    pub lease: String,
    /// How far.
    #[serde(flatten)]
    pub progress: ProgressView,
}

/// What became of each lease, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatResponse {
    /// One answer a lease.
    pub leases: Vec<LeaseAnswer>,
    /// Grants of the session that it does not know of; they were handed back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<ReleasedWire>,
}

/// A grant that was handed back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedWire {
    /// The job's id.
    pub job: String,
    /// The fencing token.
    pub token: u64,
}

/// What became of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseAnswer {
    /// The job's id.
    pub job: String,
    /// The fencing token.
    pub token: u64,
    /// `held`, `lost`, `cancelled` or `unknown_token`.
    pub status: LeaseStatus,
    /// For `lost`: what closed the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For `lost`: the lowest token still accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// For `lost`: the token that completed the job, if it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_by: Option<u64>,
}

/// How a lease stands. Everything but `held` means: stop, discard, report nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseStatus {
    /// Held, for a ttl from now.
    Held,
    /// Gone to another, or given back, or finished.
    Lost,
    /// Nobody wants the job any more.
    Cancelled,
    /// The store never granted this pair for this job.
    UnknownToken,
}

/// `POST /v1/blobs/{digest}/pin`: is it there? If so, keep it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// For an output: the job's id; the pin ends with the attempt. Without it, the pin ends after
    /// a day: for inputs, before their job is submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// For an output: the attempt's pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairWire>,
}

/// Whether the blob is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinResponse {
    /// If not: `PUT` it.
    pub present: bool,
    /// Its length. Known once present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// If not, and the writer sees the place where blobs live: write it to `digest/generation`,
    /// then say so (`POST /v1/blobs/{digest}/finish`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// `POST /v1/blobs/{digest}/finish`: a worker has written a blob to its place itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinishRequest {
    /// The generation that it was written to.
    pub generation: u64,
    /// Its length.
    pub size_bytes: u64,
}

/// `GET /v1/artefacts`: where the blobs live.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtefactsView {
    /// Where workers may write blobs themselves (`s3://bucket/prefix`); none: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How long a signed address of a download is good, in ms; none: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presign_ms: Option<u64>,
}

/// One line of a worker's session stream (`GET /v1/workers/{name}/session?session=ID`, a JSON
/// object a line).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SessionEvent {
    /// The session is known; sent first.
    Open,
    /// Nothing new; sent every few seconds, so that a broken connection is noticed.
    Ping,
    /// A lease of the session was closed otherwise than by its own verb.
    Lost {
        /// The job's id.
        job: String,
        /// The fencing token.
        token: u64,
        /// What closed it.
        reason: String,
    },
    /// A job of the session was cancelled.
    Cancelled {
        /// The job's id.
        job: String,
        /// The fencing token.
        token: u64,
    },
}
