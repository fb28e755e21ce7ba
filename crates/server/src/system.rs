//! The one room where the server takes time and randomness from the system.

use palisade_core::{
    Timestamp,
    clock::{Clock, Entropy},
};
use rustix::time::{ClockId, clock_gettime};

/// The system's own randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u128(&self) -> u128 {
        let mut bytes = [0; 16];
        #[expect(clippy::disallowed_methods, reason = "this is the room for it")]
        getrandom::fill(&mut bytes).expect("Linux has randomness once it has booted");
        u128::from_ne_bytes(bytes)
    }
}

/// The wall's time when it was made, and from then on `CLOCK_BOOTTIME`: it counts suspended time,
/// and whoever sets the wall's clock does not move it.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    wall_ms: u64,
    made_at_ms: u64,
}

impl SystemClock {
    /// A clock that agrees with the wall's now.
    pub fn new() -> Self {
        Self { wall_ms: read_ms(ClockId::Realtime), made_at_ms: read_ms(ClockId::Boottime) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let passed_ms = read_ms(ClockId::Boottime).saturating_sub(self.made_at_ms);
        Timestamp(self.wall_ms.saturating_add(passed_ms))
    }
}

/// The wall's time, in seconds since the Unix epoch: receivers compare it with their own.
pub(crate) fn wall_seconds() -> u64 {
    read_ms(ClockId::Realtime) / 1_000
}

/// What a clock shows, in ms. Before its epoch it shows zero.
fn read_ms(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}
