//! A lease lock: mutual exclusion among the well-behaved, and a fencing token for everybody else.
//!
//! The same leases, the same counter and the same refusals as a job's. Waiters are served first
//! come, first served; a release and the next waiter's grant are one change of one record. A
//! waiter that has gone, or whose wish has expired, gets nothing.

mod acquire;
mod hold;
mod seats;
mod wait;

#[cfg(test)]
mod tests;

pub use acquire::{Acquire, Acquired, acquire, needs_number};
pub use hold::{Renewed, release, renew, tick};
pub use seats::Seats;
pub use wait::leave;

use serde::{Deserialize, Serialize};

use crate::{
    HolderName, LeaseId, LockName, Number, RequestId, Timestamp,
    lease::{Lease, Pair},
};

/// A lock's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Its name.
    pub name: LockName,
    /// The lowest token still accepted. Invariant: never falls, whatever becomes of the lock.
    pub fence: Number,
    /// Who holds it.
    pub holding: Option<Holding>,
    /// Who waits, in the order in which they came.
    pub waiters: Vec<Waiter>,
}

/// A grant that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The grant's number.
    pub token: Number,
    /// The other half of the pair.
    pub lease_id: LeaseId,
    /// Who holds it, as it calls itself.
    pub holder: HolderName,
    /// The request that it answered.
    pub request_id: RequestId,
    /// The place in the queue that its request had.
    pub ticket: Number,
    /// When it was granted.
    pub granted_at: Timestamp,
    /// How long its request had waited before it was granted, in ms.
    pub waited_ms: u64,
    /// The calls that asked for it.
    #[serde(default, skip_serializing_if = "Seats::is_empty")]
    pub seats: Seats,
    /// Its time.
    pub lease: Lease,
}

/// A wish for a lock that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    /// Its place: lower came first.
    pub ticket: Number,
    /// Its request.
    pub request_id: RequestId,
    /// Who waits, as it calls itself.
    pub holder: HolderName,
    /// The lease id that its grant will have.
    pub lease_id: LeaseId,
    /// The lease's length that it asked for, in ms.
    pub ttl_ms: u64,
    /// Since when it waits.
    pub since: Timestamp,
    /// When its wish expires.
    pub wants_until: Timestamp,
    /// Up to when it is known to be there; whoever serves it says so again and again.
    pub alive_until: Timestamp,
    /// The calls that wait for it.
    #[serde(default, skip_serializing_if = "Seats::is_empty")]
    pub seats: Seats,
}

/// How a grant of a lock ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockClose {
    /// Its holder released it.
    Released,
    /// Its deadline passed, and another was granted the lock.
    Superseded,
    /// Its waiter had gone when it was granted.
    Abandoned,
}

impl LockClose {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Superseded => "superseded",
            Self::Abandoned => "abandoned",
        }
    }
}

impl std::fmt::Display for LockClose {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What is kept of a grant after its end, so that its pair is told apart from one never granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockGrant {
    /// The lock.
    pub name: LockName,
    /// The pair.
    #[serde(flatten)]
    pub pair: Pair,
    /// Who held it.
    pub holder: HolderName,
    /// The request that it answered.
    pub request_id: RequestId,
    /// When it ended and how; None while it is open.
    pub closed: Option<(Timestamp, LockClose)>,
}

/// What happened to a lock, in order: for the journal, and for the grants' records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockEvent {
    /// A grant was opened.
    Granted(Holding),
    /// A grant was closed.
    Closed {
        /// Its token.
        token: Number,
        /// Who held it.
        holder: HolderName,
        /// How it ended.
        how: LockClose,
        /// Its time, as last renewed.
        lease: Lease,
    },
    /// Somebody began to wait.
    Waiting(Waiter),
    /// A waiter left, or was passed over because it had gone.
    Left {
        /// The place that it had.
        ticket: Number,
        /// Who it was.
        holder: HolderName,
    },
}

/// What a lock's rule answers when it applies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct LockApplied<A> {
    /// The record after the event.
    pub lock: Lock,
    /// The answer to whoever caused it.
    pub answer: A,
    /// What happened. Empty when the record did not change otherwise than by a renewal.
    pub events: Vec<LockEvent>,
}

impl Lock {
    /// A lock that nobody has held yet.
    pub fn new(name: LockName) -> Self {
        Self { name, fence: Number::ZERO, holding: None, waiters: Vec::new() }
    }

    /// Closes the open grant and raises the fence past it.
    fn close(&mut self, how: LockClose, events: &mut Vec<LockEvent>) {
        let Some(holding) = self.holding.take() else { return };
        self.fence = self.fence.max(holding.token.next());
        let Holding { token, holder, lease, .. } = holding;
        events.push(LockEvent::Closed { token, holder, how, lease });
    }

    /// Opens a grant.
    ///
    /// # Panics
    /// When the token is below the fence: the counter would have gone backwards.
    fn open(&mut self, holding: Holding, events: &mut Vec<LockEvent>) {
        assert!(self.holding.is_none(), "a lock has one holder at most");
        assert!(holding.token >= self.fence, "the counter went backwards");
        self.fence = holding.token;
        events.push(LockEvent::Granted(holding.clone()));
        self.holding = Some(holding);
    }
}
