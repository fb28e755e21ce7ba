//! The store's own clock: it goes on from the latest instant that was ever recorded.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use palisade_core::{Timestamp, clock::Clock};

/// Advances as the given clock does. It starts at the later of that clock and what the store
/// recorded last, and never runs backwards.
#[derive(Debug)]
pub(super) struct StoreClock {
    clock: Arc<dyn Clock>,
    /// How far it is ahead of the given clock, in ms.
    ahead_ms: u64,
    /// The latest instant told.
    told: AtomicU64,
}

impl StoreClock {
    /// `started_at` is the instant at which the store began its life, `clock_then` what the given
    /// clock told then.
    pub(super) fn new(clock: Arc<dyn Clock>, started_at: Timestamp, clock_then: Timestamp) -> Self {
        let ahead_ms = started_at.since_ms(clock_then);
        Self { clock, ahead_ms, told: AtomicU64::new(started_at.0) }
    }

    pub(super) fn now(&self) -> Timestamp {
        let now = self.clock.now().plus_ms(self.ahead_ms).0;
        Timestamp(self.told.fetch_max(now, Ordering::SeqCst).max(now))
    }
}
