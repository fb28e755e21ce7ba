//! The sums over a whole history, and what they say about the ttl.

use super::habits::Samples;
use super::verdict::Draft;
use super::{Cause, Finding, Kind};

/// What is summed up while the history runs.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) events: u64,
    pub(crate) attempts: u64,
    pub(crate) completions: u64,
    pub(crate) renewals: u64,
    pub(crate) effects_landed: u64,
    pub(crate) effects_refused: u64,
    pub(crate) duplicate_ms: u64,
    pub(crate) overlaps: u64,
    pub(crate) overlaps_by_pause: u64,
    pub(crate) ttl_ms: u64,
    pub(crate) dropped: u64,
    pub(crate) kinds: [u64; Kind::ALL.len()],
    pub(crate) compute: Samples,
    pub(crate) recoveries: Samples,
    pub(crate) pauses: Samples,
}

impl Totals {
    pub(crate) fn note(&mut self, draft: &Draft) {
        self.kinds[draft.kind as usize] += 1;
        match draft.kind {
            Kind::Overlap => {
                self.overlaps += 1;
                self.overlaps_by_pause += u64::from(draft.cause == Cause::Pause);
                self.duplicate_ms += draft.cost_ms;
            }
            Kind::DuplicateEffect => self.duplicate_ms += draft.cost_ms,
            _ => {}
        }
    }
}

/// The sums.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Entries taken.
    pub events: u64,
    /// Entries that came too late to be put in order.
    pub out_of_order: u64,
    /// Grants, each to one worker.
    pub attempts: u64,
    /// Different resources, at least (one that comes back after a long rest counts again).
    pub resources: u64,
    /// Findings by kind, kept or not; only kinds that occur.
    pub kinds: Vec<(Kind, u64)>,
    /// Compute in all attempts, pauses left out, in ms.
    pub compute_ms: u64,
    /// Compute spent while another attempt at the same work was active or had landed it, in ms.
    pub duplicate_ms: u64,
    /// Effects that landed.
    pub effects_landed: u64,
    /// Effects that were refused.
    pub effects_refused: u64,
    /// Crashes that the lock service recovered: from the last sign of the dead to the next grant.
    pub recoveries: Samples,
    /// Silences that were unusual for their worker, long or short.
    pub pauses: Samples,
    /// The ttl that these suggest; none where there is nothing to learn from.
    pub ttl: Option<TtlAdvice>,
}

impl Summary {
    /// Counts findings that were made elsewhere than in the analysis.
    pub fn count(&mut self, more: &[Finding]) {
        for finding in more {
            match self.kinds.iter_mut().find(|(kind, _)| *kind == finding.kind) {
                Some((_, count)) => *count += 1,
                None => self.kinds.push((finding.kind, 1)),
            }
        }
        self.kinds.sort_by_key(|(kind, _)| *kind);
    }
}

/// A ttl, and what speaks for it.
#[derive(Debug, Clone)]
pub struct TtlAdvice {
    /// The longest ttl seen, in ms; zero if none was.
    pub current_ms: u64,
    /// The one that costs least, in ms.
    pub suggested_ms: u64,
    /// What each choice costs, the shorter first.
    pub choices: Vec<TtlChoice>,
}

/// What one ttl would have cost in this history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtlChoice {
    /// The ttl, in ms.
    pub ttl_ms: u64,
    /// How long a crash stalls its job on average, in ms.
    pub stall_ms: u64,
    /// How long all crashes of this history would have stalled their jobs, in ms.
    pub stalls_ms: u64,
    /// Pauses of this history that would have cost a lease.
    pub pauses_lost: u64,
    /// Compute that those would have wasted, in ms.
    pub wasted_ms: u64,
}

/// The ttls that are weighed, in ms.
const CHOICES_MS: [u64; 11] =
    [10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 90_000, 120_000, 180_000, 300_000, 600_000];

impl Totals {
    pub(crate) fn summary(self, resources: u64, out_of_order: u64) -> Summary {
        let ttl = self.advice();
        let count = |kind: &Kind| self.kinds[*kind as usize];
        Summary {
            events: self.events,
            out_of_order,
            attempts: self.attempts,
            resources,
            kinds: Kind::ALL
                .iter()
                .filter(|kind| count(kind) > 0)
                .map(|kind| (*kind, count(kind)))
                .collect(),
            compute_ms: self.compute.sum_ms(),
            duplicate_ms: self.duplicate_ms,
            effects_landed: self.effects_landed,
            effects_refused: self.effects_refused,
            recoveries: self.recoveries,
            pauses: self.pauses,
            ttl,
        }
    }

    /// Weighs each ttl: crashes stall their jobs for most of a ttl, pauses longer than what is
    /// left of one cost a duplicate.
    fn advice(&self) -> Option<TtlAdvice> {
        let crashes = self.recoveries.count() + self.kinds[Kind::Stall as usize];
        if crashes == 0 && self.pauses.count() == 0 {
            return None;
        }
        // A lost lease costs a second rendering of what was left, half of one on average.
        let waste_ms = self.compute.mean_ms() / 2;
        let choices: Vec<TtlChoice> = CHOICES_MS
            .iter()
            .map(|ttl_ms| {
                // Renewed at a third of the ttl, a crash finds five sixths of it left on average.
                let left_ms = ttl_ms * 5 / 6;
                let pauses_lost = self.pauses.between(left_ms, u64::MAX);
                TtlChoice {
                    ttl_ms: *ttl_ms,
                    stall_ms: left_ms,
                    stalls_ms: left_ms * crashes,
                    pauses_lost,
                    wasted_ms: pauses_lost * waste_ms,
                }
            })
            .collect();
        let best = choices.iter().min_by_key(|choice| choice.stalls_ms + choice.wasted_ms)?;
        let suggested_ms = best.ttl_ms;
        Some(TtlAdvice { current_ms: self.ttl_ms, suggested_ms, choices })
    }
}
