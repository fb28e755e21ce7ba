//! The worker's clock: CLOCK_BOOTTIME, which counts the time in which the machine was suspended.
//! `Instant` does not, so it is no measure of leases.

use palisade_core::{Timestamp, clock::Clock};

/// CLOCK_BOOTTIME, in ms since the machine started. For spans alone: it says nothing of dates.
#[derive(Debug, Clone, Copy, Default)]
pub struct BoottimeClock;

impl Clock for BoottimeClock {
    fn now(&self) -> Timestamp {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let milliseconds = u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000;
        Timestamp(seconds * 1_000 + milliseconds)
    }
}
