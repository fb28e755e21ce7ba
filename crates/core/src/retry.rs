//! How often a job is tried, and how long it waits in between.

use serde::{Deserialize, Serialize};

/// Budgets of a job. Failures (reported by the worker) and losses (of worker, host, network,
/// server) are counted apart: an outage must not use up the retries of a healthy export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The failure that makes the job `failed`: 3 means the third one does.
    pub failures_allowed: u32,
    /// How many losses are put up with; one more makes the job `failed`, so that a job which
    /// kills its workers does not kill them for ever.
    pub losses_allowed: u32,
    /// The wait after the first failure, in ms; it doubles with each.
    pub backoff_ms: u64,
    /// The longest wait, in ms.
    pub backoff_ms_max: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { failures_allowed: 3, losses_allowed: 5, backoff_ms: 5_000, backoff_ms_max: 600_000 }
    }
}

impl RetryPolicy {
    /// The wait after the `failures`-th failure, in ms: exponential, of which the upper half is
    /// random, so that a herd that failed together does not return together.
    pub fn wait_ms(&self, failures: u32, chance: u64) -> u64 {
        let doublings = failures.saturating_sub(1).min(32);
        let whole = self.backoff_ms.saturating_mul(1 << doublings).min(self.backoff_ms_max);
        let half = whole / 2;
        half + if whole == half { 0 } else { chance % (whole - half + 1) }
    }
}

#[cfg(test)]
mod tests;
