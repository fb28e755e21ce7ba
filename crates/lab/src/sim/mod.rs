//! The simulator: the real rules, the real store's operations and the real keeper under thousands
//! of schedules of crashes, pauses, lost and repeated messages and jumping clocks.
//!
//! One thread a run, virtual time, everything from one seed. First everything may fail (safety);
//! then the faults end, and everything must finish (liveness).

mod judge;
mod locker;
mod network;
mod outside;
mod plan;
mod report;
mod server;
mod stranger;
mod submitter;
mod table;
mod tally;
mod timeline;
mod trace;
mod worker;
mod world;

#[cfg(test)]
mod tests;

pub use judge::Verdict;
pub use report::{DesignReport, Found, Report};
pub(crate) use submitter::{capability, spec_of};
pub use table::HEAD;
pub use timeline::timeline;
pub(crate) use worker::manifest_of;
pub use world::Setting;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{designs::Design, sabotage::Sabotage};

use world::World;

/// What to simulate.
#[derive(Debug, Clone)]
pub struct Config {
    /// The designs, in the order of the table.
    pub designs: Vec<Design>,
    /// The first seed.
    pub seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// A deliberate fault.
    pub broken: Option<Sabotage>,
    /// How many runs at a time.
    pub threads: usize,
    /// Every so many-th seed keeps its records in SQLite; 0: none does.
    pub sqlite_every: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            designs: Design::ALL.to_vec(),
            seed: 1,
            seeds: 1_000,
            broken: None,
            threads: 2,
            sqlite_every: 0,
        }
    }
}

impl Config {
    /// The setting of one run. The seed alone decides it, so that it can be replayed alone.
    pub fn setting(&self, design: Design, seed: u64) -> Setting {
        let sqlite = self.sqlite_every > 0 && seed.is_multiple_of(self.sqlite_every);
        Setting { seed, design, broken: self.broken, sqlite, traced: false, clean: false }
    }
}

/// Runs one seed of one design.
pub fn run_one(setting: Setting) -> Verdict {
    let mut world = World::new(setting);
    world.run();
    judge::judge(&world)
}

/// Runs all seeds of all designs. The report does not depend on how many threads there are.
pub fn run(config: &Config) -> Report {
    let mut report = Report::default();
    for design in &config.designs {
        let verdicts = run_design(config, *design);
        report.add(config, *design, verdicts);
    }
    report
}

fn run_design(config: &Config, design: Design) -> Vec<(u64, Verdict)> {
    let next = AtomicU64::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= config.seeds {
                return done;
            }
            let seed = config.seed.wrapping_add(index);
            done.push((seed, run_one(config.setting(design, seed))));
        }
    };
    let mut verdicts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..config.threads.max(1)).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.flat_map(|done| done.expect("a run that panics ends the whole")).collect()
    });
    verdicts.sort_by_key(|(seed, _)| seed.wrapping_sub(config.seed));
    verdicts
}
