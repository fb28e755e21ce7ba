//! The rules under random interleavings of submitters, workers, strangers, time and restarts, with
//! lost replies and repeats. What must hold is in `audit`, `replay` and `play`.

use proptest::prelude::*;

use crate::retry::RetryPolicy;

use super::{
    happenings::{Happening, happenings},
    play::Play,
};

fn policies() -> impl Strategy<Value = RetryPolicy> {
    (0..4_u32, 0..4_u32).prop_map(|(failures_allowed, losses_allowed)| RetryPolicy {
        failures_allowed,
        losses_allowed,
        backoff_ms: 1_000,
        backoff_ms_max: 4_000,
    })
}

fn play(policy: RetryPolicy, backup_after_ms: Option<u64>, happenings: &[Happening]) {
    let mut play = Play::new(policy, backup_after_ms);
    for happening in happenings {
        play.happen(happening);
    }
    // No matter what happened in between.
    play.repeat_all();
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    })]

    #[test]
    fn the_rules_hold_whatever_happens_in_whatever_order(
        policy in policies(),
        happenings in prop::collection::vec(happenings(), 1..80),
    ) {
        play(policy, None, &happenings);
    }

    #[test]
    fn the_rules_hold_with_backups_too(
        policy in policies(),
        backup_after_ms in 0..40_000_u64,
        happenings in prop::collection::vec(happenings(), 1..80),
    ) {
        play(policy, Some(backup_after_ms), &happenings);
    }
}
