//! A lease: how long a grant is kept without renewal, and what a restart does to it.

use serde::{Deserialize, Serialize};

use crate::{LeaseId, Number, Timestamp, time::granted_span_ms};

/// A fencing token and the lease id it was granted with. Whoever writes shows both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pair {
    /// The number of the grant.
    pub token: Number,
    /// The random value that went with it.
    #[serde(rename = "lease")]
    pub lease_id: LeaseId,
}

/// When something happens: the granting side's clock, and which of its lives it is in.
///
/// A life is the time between two starts of the store; waking from a gap counts as a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The granting side's clock.
    pub at: Timestamp,
    /// How many times the store has started.
    pub life: u64,
}

/// The time side of a grant.
///
/// Invariant: `deadline` is never further ahead than `ttl_ms × (1 + ρ)` from when it was set.
/// A lapsed deadline takes nothing away by itself: it only lets somebody else be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// What the holder asked for, in ms.
    pub ttl_ms: u64,
    /// Up to when nobody else is granted what this lease holds.
    pub deadline: Timestamp,
    /// When it was granted or last renewed.
    pub renewed_at: Timestamp,
    /// The life of the store in which it was granted or first renewed last.
    pub life: u64,
}

/// What a start of the store knows about the life before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The life that has just ended.
    pub past_life: u64,
    /// The clock as that life recorded it last. Time after it was not served.
    pub recorded_at: Timestamp,
    /// The clock now, and the new life.
    pub now: Moment,
}

impl Lease {
    /// A lease granted now.
    pub const fn granted(ttl_ms: u64, now: Moment) -> Self {
        Self {
            ttl_ms,
            deadline: now.at.plus_ms(granted_span_ms(ttl_ms)),
            renewed_at: now.at,
            life: now.life,
        }
    }

    /// The lease renewed now.
    ///
    /// Of several servers on one store, one may have read its clock, been paused, and come after
    /// another's renewal: what that one promised is not taken back.
    #[must_use]
    pub fn renewed(self, now: Moment) -> Self {
        let renewed = Self::granted(self.ttl_ms, now);
        Self {
            deadline: renewed.deadline.max(self.deadline),
            renewed_at: renewed.renewed_at.max(self.renewed_at),
            ..renewed
        }
    }

    /// Whether this renewal must be durable before it is answered: the first one of a life must,
    /// because the next start decides by it who was alive. The others live in memory.
    pub const fn renewal_must_be_durable(self, now: Moment) -> bool {
        self.life != now.life
    }

    /// Whether the holder still has time.
    pub fn is_within(self, now: Timestamp) -> bool {
        now < self.deadline
    }

    /// The lease of a holder whose session ended and did not come back: claimable at once, unless
    /// it was renewed after `seen_at`, when the end was noticed.
    #[must_use]
    pub fn suspected(self, seen_at: Timestamp, now: Timestamp) -> Self {
        if self.renewed_at > seen_at {
            return self;
        }
        Self { deadline: self.deadline.min(now), ..self }
    }

    /// The lease after a start: only time in which the store served counts against it.
    ///
    /// Whoever was granted or renewed in the life just past gets a whole ttl; every other keeps
    /// what was left when the clock was last recorded.
    #[must_use]
    pub fn after_start(self, start: Start) -> Self {
        let whole = granted_span_ms(self.ttl_ms);
        let left_ms = if self.life == start.past_life {
            whole
        } else {
            self.deadline.since_ms(start.recorded_at).min(whole)
        };
        Self { deadline: start.now.at.plus_ms(left_ms), ..self }
    }
}

#[cfg(test)]
mod tests;
