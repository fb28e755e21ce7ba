//! Fenced objects on the wire.

use serde::{Deserialize, Serialize};

/// The media type of a published name: the manifest, as JSON.
pub const MANIFEST_MEDIA_TYPE: &str = "application/vnd.palisade.manifest+json";

/// An object: what it points at, and what may still write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectView {
    /// Its name.
    pub key: String,
    /// The lowest token still accepted.
    pub fence: u64,
    /// The number that wrote it last: a grant's token or, of a published name, a submission's
    /// number.
    pub token: u64,
    /// Which of that holder's writes it was.
    pub op: u64,
    /// The version that the write made; the `ETag`, in quotes, is this.
    pub version: u64,
    /// When, on the store's clock.
    pub written_at_ms: u64,
    /// Of a published name: the job whose outputs it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The bytes' digest; none: it was deleted, only ever raised, or shows a job's outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Their length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Their media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// `GET /v1/objects`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectList {
    /// By key; deleted ones are not among them.
    pub objects: Vec<ObjectView>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
