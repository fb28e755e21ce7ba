//! What a batch of runs came to, as data, as a table, and as the sentence that the numbers support.

use serde::Serialize;

use crate::designs::Design;

use super::{Config, Verdict};

/// All designs of a batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// One entry a design, in the order of the table.
    pub designs: Vec<DesignReport>,
    /// Violations by designs that are held to it, each with how to see it again.
    #[serde(skip)]
    pub found: Vec<Found>,
}

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// By which design.
    pub design: Design,
    /// With which seed.
    pub seed: u64,
    /// What.
    pub what: Vec<String>,
    /// The command that shows it again.
    pub replay: String,
}

/// Duplicate effects of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DuplicateEffects {
    /// Finished files that an outsider saw change.
    pub write: u64,
    /// Rows beyond the first.
    pub database: u64,
    /// Notifications beyond the first.
    pub notification: u64,
}

/// What a design's runs came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignReport {
    /// The design.
    pub design: String,
    /// Jobs wished for.
    pub jobs: u64,
    /// Jobs not finished within the bound after the faults had ended.
    pub stalled: u64,
    /// Renderings that ran to their end beside another of the same job.
    pub duplicate_renders: u64,
    /// Lasting effects beyond the first.
    pub duplicate_effects: DuplicateEffects,
    /// Jobs acknowledged and gone, or complete without their effects.
    pub lost: u64,
    /// Rendering time that no completion used, in per cent of all.
    pub wasted_percent: f64,
    /// How long half of the jobs whose worker died waited at most, in ms. None: none came back.
    pub recovery_p50_ms: Option<u64>,
    /// How long 99 of 100 waited at most, in ms.
    pub recovery_p99_ms: Option<u64>,
    /// Events simulated.
    #[serde(skip)]
    pub steps: u64,
    /// Time spent rendering, in ms.
    #[serde(skip)]
    pub spent_ms: u64,
    /// The part of it that a completion used, in ms.
    #[serde(skip)]
    pub used_ms: u64,
}

impl DesignReport {
    /// Lasting effects beyond the first, of all kinds.
    pub fn doubled(&self) -> u64 {
        let effects = self.duplicate_effects;
        effects.write + effects.database + effects.notification
    }

    /// Whether nothing was doubled, lost or stalled.
    pub fn is_correct(&self) -> bool {
        self.doubled() == 0 && self.lost == 0 && self.stalled == 0
    }

    /// Whether the design promises that.
    pub fn is_held_to_it(&self) -> bool {
        self.design.parse::<Design>().is_ok_and(Design::is_held_to_it)
    }

    /// Compute wasted, in tenths of a per cent.
    pub(super) fn wasted_tenths(&self) -> u64 {
        if self.spent_ms == 0 {
            return 0;
        }
        self.spent_ms.saturating_sub(self.used_ms) * 1_000 / self.spent_ms
    }
}

impl Report {
    /// Adds a design's runs.
    pub(super) fn add(&mut self, config: &Config, design: Design, verdicts: Vec<(u64, Verdict)>) {
        let sum = |of: fn(&Verdict) -> u64| verdicts.iter().map(|(_, one)| of(one)).sum::<u64>();
        let mut recoveries: Vec<_> =
            verdicts.iter().flat_map(|(_, one)| one.recoveries_ms.iter().copied()).collect();
        recoveries.sort_unstable();
        let mut one = DesignReport {
            design: design.name().to_owned(),
            jobs: sum(|one| one.jobs),
            stalled: sum(|one| one.stalled),
            duplicate_renders: sum(|one| one.duplicate_renders),
            duplicate_effects: DuplicateEffects {
                write: sum(|one| one.duplicate_effects[0]),
                database: sum(|one| one.duplicate_effects[1]),
                notification: sum(|one| one.duplicate_effects[2]),
            },
            lost: sum(|one| one.lost),
            wasted_percent: 0.0,
            recovery_p50_ms: percentile(&recoveries, 50),
            recovery_p99_ms: percentile(&recoveries, 99),
            steps: sum(|one| one.steps),
            spent_ms: sum(|one| one.spent_ms),
            used_ms: sum(|one| one.used_ms),
        };
        // In tenths, so that the text is the same everywhere.
        let tenths = u32::try_from(one.wasted_tenths()).expect("at most a thousand");
        one.wasted_percent = f64::from(tenths) / 10.0;
        self.designs.push(one);
        for (seed, verdict) in verdicts {
            if !verdict.violations.is_empty() {
                let replay = replay(config, design, seed);
                self.found.push(Found { design, seed, what: verdict.violations, replay });
            }
        }
    }

    /// Whether every design that is held to it kept its word.
    pub fn is_clean(&self) -> bool {
        self.found.is_empty()
    }
}

/// The command that runs one seed again.
fn replay(config: &Config, design: Design, seed: u64) -> String {
    let broken = config.broken.map(|broken| format!(" --break {broken}")).unwrap_or_default();
    let sqlite = u8::from(config.setting(design, seed).sqlite);
    format!("palisade simulate --design {design} --timeline {seed} --sqlite-every {sqlite}{broken}")
}

fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let index = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(index).copied()
}
