//! Looks whether a sabotage is noticed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{explore, sim};

use super::{Hunt, Sabotage};

/// How many seeds are tried before a sabotage counts as unnoticed.
const SEEDS_MAX: u64 = 500;
/// How many states of a small world are looked at most.
const STATES_MAX: u64 = 3_000_000;

/// How a sabotage was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caught {
    /// What was noticed.
    pub what: String,
    /// The command that shows it again.
    pub replay: String,
}

/// Looks until the sabotage is noticed. None: there is a hole in the checkers.
pub fn catch(sabotage: Sabotage) -> Option<Caught> {
    match sabotage.hunt() {
        Hunt::Explore(world) => {
            let replay = format!("palisade explore --world {} --break {sabotage}", world.name());
            let explored = noticed(|| {
                let outcome = explore::run_one(world, Some(sabotage), STATES_MAX);
                outcome.violation.map(|violation| violation.what)
            });
            explored.map(|what| Caught { what, replay })
        }
        Hunt::Simulate(design) => (1..=SEEDS_MAX).find_map(|seed| {
            let config = sim::Config { broken: Some(sabotage), ..sim::Config::default() };
            let setting = config.setting(design, seed);
            let replay =
                format!("palisade simulate --design {design} --timeline {seed} --break {sabotage}");
            let what = noticed(|| sim::run_one(setting).violations.into_iter().next())?;
            Some(Caught { what, replay })
        }),
    }
}

/// A violation, or an assertion of the product that did not hold: both are noticed.
fn noticed(run: impl FnOnce() -> Option<String>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(violation) => violation,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(format!("an assertion failed: {}", said.unwrap_or_default()))
        }
    }
}
