//! The machine's clock and randomness: the one room of the binary that asks for them.

use palisade_core::{Timestamp, clock::{Clock, Entropy}};

/// Randomness from the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u128(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system has randomness");
        u128::from_le_bytes(bytes)
    }
}

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
        Self { wall_at_boot_ms: wall_ms.saturating_sub(boottime_ms()) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall_at_boot_ms + boottime_ms())
    }
}

fn boottime_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000 + nanos / 1_000_000
}
