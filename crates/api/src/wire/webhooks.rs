//! Webhooks on the wire: who is told, and what became of what was told.

use serde::{Deserialize, Serialize};

/// `POST /v1/webhooks`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookRequest {
    /// Where to: an http:// or https:// address.
    pub url: String,
    /// What of: `job.completed`, `job.failed`, `job.cancelled`, `job.progress`. The first three
    /// if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Whose jobs; the default tenant's if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// `POST /v1/webhooks/{id}/rotate`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotateRequest {
    /// How long the old secret signs beside the new one; a day if not given, at most a week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_ms: Option<u64>,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookView {
    /// Its id.
    pub id: String,
    /// Where to.
    pub url: String,
    /// What of.
    pub events: Vec<String>,
    /// Whose jobs.
    pub tenant: String,
    /// When it was made.
    pub created_at_ms: u64,
    /// What signs, as Standard Webhooks writes it: `whsec_` and base64. Shown by the request that
    /// made it, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Up to when the secret before it signs too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secret_until_ms: Option<u64>,
}

/// `GET /v1/webhooks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookList {
    /// By id.
    pub webhooks: Vec<WebhookView>,
}

/// A notification to one webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryView {
    /// Its stable id: the `webhook-id` header of every delivery of it.
    pub id: String,
    /// The webhook.
    pub webhook: String,
    /// What happened.
    pub event: String,
    /// The job.
    pub job: String,
    /// The submission.
    pub submission: u64,
    /// The token that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// Rises with each thing told about the job.
    pub seq: u64,
    /// When it happened.
    pub at_ms: u64,
    /// `pending`, `leased`, `delivered` or `dead`.
    pub state: String,
    /// Tries begun since it was queued.
    pub tries: u32,
    /// Pending: not before this. Leased: up to when. Else: when it came to this state.
    pub due_at_ms: u64,
    /// The receiver's status at the last failed try, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status: Option<u16>,
    /// What the last failed try came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// `GET /v1/webhooks/{id}/deliveries`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryList {
    /// Newest first.
    pub deliveries: Vec<DeliveryView>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
