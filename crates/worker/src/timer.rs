//! Waiting, on the same clock that leases are counted on.

use std::time::Duration;

use async_trait::async_trait;
use palisade_core::{Timestamp, clock::Clock};

use crate::clock::BoottimeClock;

/// A clock that can also be waited on.
#[async_trait]
pub trait Timer: Clock {
    /// Returns once the clock has reached `at`.
    async fn sleep_until(&self, at: Timestamp);
}

/// The longest that is slept without a look at the clock, in ms: the system's timers stand still
/// while the machine is suspended, the clock does not.
const LOOK_AGAIN_MS: u64 = 1_000;

#[async_trait]
impl Timer for BoottimeClock {
    async fn sleep_until(&self, at: Timestamp) {
        loop {
            let left_ms = at.since_ms(self.now());
            if left_ms == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left_ms.min(LOOK_AGAIN_MS))).await;
        }
    }
}

/// Waits for so many ms.
pub(crate) async fn sleep_ms(timer: &dyn Timer, ms: u64) {
    timer.sleep_until(timer.now().plus_ms(ms)).await;
}

/// Runs `work` for at most so many ms. None: the time was over first, and the work is dropped.
pub(crate) async fn within_ms<T>(
    timer: &dyn Timer,
    ms: u64,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = sleep_ms(timer, ms) => None,
    }
}
