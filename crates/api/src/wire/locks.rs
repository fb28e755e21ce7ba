//! Lease locks on the wire.

use serde::{Deserialize, Serialize};

/// `POST /v1/locks/{name}/acquire`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcquireRequest {
    /// Who asks, as it calls itself.
    pub holder: String,
    /// The lease's length; 30 s if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// How long to wait while somebody else holds it; not at all if not given.
    #[serde(default)]
    pub wait_ms: u64,
    /// Random. Asked again with it, the same grant or the same wish: a lost reply strands nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A lock was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcquireResponse {
    /// The fencing token: show it, with the lease id, at every effect.
    pub token: u64,
    /// The lease id.
    pub lease: String,
    /// The lease's length, counted from the grant.
    pub ttl_ms: u64,
    /// How long this request had waited at the server before the grant.
    pub waited_ms: u64,
}

/// `POST /v1/locks/{name}/renew`, answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewResponse {
    /// The lease's length, counted from this renewal.
    pub ttl_ms: u64,
    /// Up to when nobody else is granted the lock, on the store's clock.
    pub deadline_ms: u64,
}

/// `POST /v1/locks/{name}/release`, answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockReleased {
    /// True.
    pub released: bool,
}

/// A lock. Lease ids are not shown: whoever knew one could act as the holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockView {
    /// Its name.
    pub name: String,
    /// The lowest token still accepted.
    pub fence: u64,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<LockHeldView>,
    /// Who waits, in the order in which they will be served.
    pub waiters: Vec<LockWaiterView>,
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHeldView {
    /// The fencing token.
    pub token: u64,
    /// As it calls itself.
    pub holder: String,
    /// When it was granted.
    pub granted_at_ms: u64,
    /// The lease's length.
    pub ttl_ms: u64,
    /// Up to when nobody else is granted it; past it, the holder is silent and nobody waits.
    pub deadline_ms: u64,
}

/// Who waits for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWaiterView {
    /// As it calls itself.
    pub holder: String,
    /// Since when.
    pub since_ms: u64,
}

/// `GET /v1/locks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockList {
    /// By name.
    pub locks: Vec<LockView>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
