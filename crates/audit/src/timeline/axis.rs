//! Ticks of a time axis at round instants.

use palisade_core::Timestamp;

use super::Stretch;
use crate::words::clock;

const STEPS_MS: [u64; 24] = [
    1,
    5,
    10,
    50,
    100,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    21_600_000,
    43_200_000,
    86_400_000,
    604_800_000,
];

/// Round instants within a stretch, at most `most` of them, with their labels.
pub(super) fn ticks(stretch: Stretch, most: usize) -> Vec<(Timestamp, String)> {
    let length_ms = stretch.to.since_ms(stretch.from).max(1);
    let most = u64::try_from(most.max(1)).unwrap_or(1);
    let step_ms =
        STEPS_MS.into_iter().find(|step_ms| length_ms / step_ms < most).unwrap_or(length_ms);
    let first = stretch.from.0.div_ceil(step_ms) * step_ms;
    std::iter::successors(Some(first), |at| Some(at + step_ms))
        .take_while(|at| *at <= stretch.to.0)
        .map(|at| (Timestamp(at), label(Timestamp(at), step_ms)))
        .collect()
}

fn label(at: Timestamp, step_ms: u64) -> String {
    let text = clock(at);
    if step_ms >= 60_000 {
        text[..5].to_owned()
    } else if step_ms >= 1_000 {
        text[..8].to_owned()
    } else {
        text
    }
}

/// Where an instant lies, when the stretch is `size` units wide: 0 to `size - 1`.
pub(super) fn place(at: Timestamp, stretch: Stretch, size: usize) -> usize {
    let length_ms = u128::from(stretch.to.since_ms(stretch.from).max(1));
    let offset_ms = u128::from(at.since_ms(stretch.from)).min(length_ms);
    let last = size.saturating_sub(1) as u128;
    usize::try_from((offset_ms * last + length_ms / 2) / length_ms).unwrap_or(0)
}
