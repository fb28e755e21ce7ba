//! Notifications: endpoints, leases of deliveries and their settlement, what a render's progress
//! is told to.

use palisade_core::{
    JobId, LeaseId, Number,
    lease::Pair,
    outbox::{Delivery, Endpoint, EndpointId, EventId, Progress, Secret, Tried},
};

/// Somebody wants to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateEndpoint {
    /// The endpoint, its id and secret random. When it was made is the store's to say.
    pub endpoint: Endpoint,
}

/// An endpoint signs with another secret from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotateSecret {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The new secret, random.
    pub secret: Secret,
    /// How long the old one signs beside it, in ms.
    pub keep_ms: u64,
}

/// Nobody is told at an endpoint any more. Its rows go with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteEndpoint {
    /// The endpoint.
    pub endpoint: EndpointId,
}

/// A deliverer asks for what is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseDeliveries {
    /// One for each row that it would take, random and never used before.
    pub lease_ids: Vec<LeaseId>,
    /// Most rows of one endpoint that are leased at once, so that one that does not answer leaves
    /// room for the others.
    pub endpoint_max: usize,
    /// The leases' length, in ms: longer than a try can take.
    pub ttl_ms: u64,
}

/// What a deliverer may try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedDeliveries {
    /// The rows, leased.
    pub leased: Vec<ToDeliver>,
    /// When something becomes due without anybody's doing.
    pub next_at: Option<palisade_core::Timestamp>,
    /// Everybody who wants to be told.
    pub endpoints: Vec<Endpoint>,
}

/// A row to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToDeliver {
    /// The row.
    pub delivery: Delivery,
    /// Its lease.
    pub lease_id: LeaseId,
    /// Where to.
    pub endpoint: Endpoint,
}

/// A deliverer tells what its try came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettleDelivery {
    /// The row.
    pub id: EventId,
    /// Its lease.
    pub lease_id: LeaseId,
    /// What it came to.
    pub tried: Tried,
    /// Random: the backoff's jitter.
    pub chance: u64,
}

/// What a settlement came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It was recorded.
    Recorded,
    /// The lease was not the row's any more, or the row has gone: nothing was changed.
    Ignored,
}

/// Somebody wants a row delivered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redeliver {
    /// The row.
    pub id: EventId,
}

/// Renders came further, and somebody asked to be told. Writes no rows: what is not delivered is
/// not told.
#[derive(Debug, Clone, PartialEq)]
pub struct TellProgress {
    /// Each with its attempt.
    pub renders: Vec<(JobId, Pair, Progress)>,
}

/// What is to be sent of it, now or never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressNotices {
    /// To whom, under which number, and the body.
    pub notices: Vec<(Endpoint, Number, String)>,
}
