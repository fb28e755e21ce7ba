//! Whether what workers were told of each job could have come about one operation at a time.

use std::collections::BTreeMap;

use palisade_core::JobId;

use crate::{
    designs::Design,
    linear::{Holding, Operation, is_linearizable},
    sim::world::World,
};

use super::Verdict;

/// Longer histories are not searched.
const OPERATIONS_MAX: usize = 64;

/// Checks each job's history. A liar grants beside a live holder, so its grants replace nobody.
pub(super) fn check(world: &World, verdict: &mut Verdict) {
    if world.design == Design::LyingDispatch {
        return;
    }
    let mut by_job: BTreeMap<JobId, Vec<Operation>> = BTreeMap::new();
    for (job, operation) in world.tally.operations.values() {
        by_job.entry(*job).or_default().push(*operation);
    }
    for (job, history) in by_job {
        // What was withdrawn, given up or released unheard is taken away without a grant.
        let fits = history.len() <= OPERATIONS_MAX;
        if fits && !is_linearizable(&history, Holding::MayBeTaken) {
            verdict.violate(format!("what was told of {job} is not linearizable: {history:?}"));
        }
    }
}
