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

    /// The instant as RFC 3339 writes it, in UTC: `2026-12-02T14:15:54.123Z`.
    pub fn rfc3339(self) -> String {
        let (days, ms) = (self.0 / DAY_MS, self.0 % DAY_MS);
        // Counted from 1 March of the year 0, in eras of 400 years, so that leap days come last.
        let days = days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let march_month = (5 * day + 2) / 153;
        let day = day - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = era * 400 + year + u64::from(month <= 2);
        let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        let ms = ms % 1_000;
        format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
    }
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

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
