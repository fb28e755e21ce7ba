//! Instants and spans, in milliseconds. The clock itself is always an argument.

use serde::{Deserialize, Serialize};

/// An instant on the granting side's clock, in ms since the Unix epoch.
///
/// That clock counts suspended time and never runs backwards, within a run or across runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The instant `ms` later; saturates.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// How long after `earlier` this is, in ms; zero if it is not after it.
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// How far two clocks may drift apart, as a fraction: 1/1000 (`ρ` in the documents).
pub const DRIFT_DIVISOR: u64 = 1_000;

/// A ttl as the granting side counts it, in ms: `ttl × (1 + ρ)`, rounded up, so that its clock may
/// run fast without freeing what the holder still trusts.
pub const fn granted_span_ms(ttl_ms: u64) -> u64 {
    ttl_ms.saturating_add(ttl_ms.div_ceil(DRIFT_DIVISOR))
}

/// A ttl as its holder may trust it, in ms: `ttl × (1 - ρ) - margin`, with a margin of a
/// twentieth of the ttl, at most one second. Counted from *before* the request was sent.
pub const fn trusted_span_ms(ttl_ms: u64) -> u64 {
    let margin = if ttl_ms / 20 < 1_000 { ttl_ms / 20 } else { 1_000 };
    ttl_ms.saturating_sub(ttl_ms.div_ceil(DRIFT_DIVISOR)).saturating_sub(margin)
}

#[cfg(test)]
mod tests;
