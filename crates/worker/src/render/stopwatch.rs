//! Time and stall limits, in running time: what passes while a render is frozen, or while worker
//! and all were stopped or suspended, does not count.

use palisade_core::Timestamp;

/// The longest gap between two looks that counts, in ms. We look every second; a longer gap is a
/// pause of our own, in which the render may not have run either.
const GAP_MS_MAX: u64 = 5_000;

/// Measures one render.
#[derive(Debug)]
pub(super) struct Stopwatch {
    time_limit_ms: u64,
    stall_limit_ms: u64,
    ran_ms: u64,
    /// Running time since anything moved.
    still_ms: u64,
    seen: Timestamp,
}

/// The limit that a render has reached, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    Time(u64),
    Stall(u64),
}

impl Stopwatch {
    pub(super) fn new(time_limit_s: u64, stall_limit_s: u64, now: Timestamp) -> Self {
        Self {
            time_limit_ms: time_limit_s.saturating_mul(1_000),
            stall_limit_ms: stall_limit_s.saturating_mul(1_000),
            ran_ms: 0,
            still_ms: 0,
            seen: now,
        }
    }

    /// A look at the clock. `counts_stall` is whether what runs tells its progress at all.
    pub(super) fn look(
        &mut self,
        now: Timestamp,
        is_frozen: bool,
        counts_stall: bool,
    ) -> Option<Reached> {
        let gap_ms = now.since_ms(self.seen).min(GAP_MS_MAX);
        self.seen = now;
        if is_frozen {
            return None;
        }
        self.ran_ms += gap_ms;
        self.still_ms = if counts_stall { self.still_ms + gap_ms } else { 0 };
        if self.ran_ms >= self.time_limit_ms {
            return Some(Reached::Time(self.time_limit_ms));
        }
        (self.still_ms >= self.stall_limit_ms).then_some(Reached::Stall(self.stall_limit_ms))
    }

    /// Something moved.
    pub(super) fn moved(&mut self) {
        self.still_ms = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_at(watch: &mut Stopwatch, seconds: u64, is_frozen: bool) -> Option<Reached> {
        watch.look(Timestamp(seconds * 1_000), is_frozen, true)
    }

    #[test]
    fn a_render_that_stands_still_is_told_and_one_that_moves_is_not() {
        let mut watch = Stopwatch::new(1_000, 10, Timestamp(0));
        assert_eq!((1..10).find_map(|second| look_at(&mut watch, second, false)), None);
        watch.moved();
        assert_eq!((10..19).find_map(|second| look_at(&mut watch, second, false)), None);
        assert_eq!(look_at(&mut watch, 19, false), Some(Reached::Stall(10_000)));
    }

    #[test]
    fn frozen_time_counts_for_neither_limit() {
        let mut watch = Stopwatch::new(20, 10, Timestamp(0));
        assert_eq!((1..=9).find_map(|second| look_at(&mut watch, second, false)), None);
        assert_eq!((10..500).find_map(|second| look_at(&mut watch, second, true)), None);
        assert_eq!(look_at(&mut watch, 500, false), Some(Reached::Stall(10_000)));
        watch.moved();
        let rest = (501..=510).find_map(|second| {
            watch.moved();
            look_at(&mut watch, second, false).map(|reached| (second, reached))
        });
        assert_eq!(rest, Some((510, Reached::Time(20_000))));
    }

    #[test]
    fn a_pause_of_the_worker_itself_counts_little() {
        let mut watch = Stopwatch::new(100, 10, Timestamp(0));
        assert_eq!(look_at(&mut watch, 40_000, false), None);
        assert_eq!(look_at(&mut watch, 40_004, false), None);
        assert_eq!(look_at(&mut watch, 40_005, false), Some(Reached::Stall(10_000)));
    }

    #[test]
    fn a_step_that_tells_no_progress_cannot_stall() {
        let mut watch = Stopwatch::new(100, 2, Timestamp(0));
        let reached =
            (1..100).find_map(|second| watch.look(Timestamp(second * 1_000), false, false));
        assert_eq!(reached, None);
        assert_eq!(look_at(&mut watch, 100, false), Some(Reached::Time(100_000)));
    }
}
