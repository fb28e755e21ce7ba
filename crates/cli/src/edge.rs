//! The machine's clock: the one room of the binary that asks for it.

use palisade_core::{Timestamp, clock::Clock};
use palisade_worker::clock::BoottimeClock;

/// The wall clock as it was at the start, carried on by `CLOCK_BOOTTIME`: it counts suspended
/// time, and a clock that an operator sets back does not take it back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock {
    wall_at_boot_ms: u64,
}

impl SystemClock {
    /// Reads the wall clock, once.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others are given")]
    pub(crate) fn new() -> Self {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let wall_ms = wall.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
        Self { wall_at_boot_ms: wall_ms.saturating_sub(BoottimeClock.now().0) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall_at_boot_ms + BoottimeClock.now().0)
    }
}
