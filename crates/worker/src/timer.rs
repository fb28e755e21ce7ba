//! Waiting, on the same clock that leases are counted on.

use async_trait::async_trait;
use palisade_core::{Timestamp, clock::Clock};

/// A clock that can also be waited on.
#[async_trait]
pub trait Timer: Clock {
    /// Returns once the clock has reached `at`.
    async fn sleep_until(&self, at: Timestamp);
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
