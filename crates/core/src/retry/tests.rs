use proptest::prelude::*;

use super::*;

fn policy(backoff_ms: u64, backoff_ms_max: u64) -> RetryPolicy {
    RetryPolicy { backoff_ms, backoff_ms_max, ..RetryPolicy::default() }
}

#[test]
fn the_wait_doubles_up_to_the_longest() {
    let policy = policy(1_000, 6_000);
    // The jitter that adds nothing, and the one that adds all.
    for (failures, least, most) in [
        (0, 500, 1_000),
        (1, 500, 1_000),
        (2, 1_000, 2_000),
        (3, 2_000, 4_000),
        (4, 3_000, 6_000),
        (u32::MAX, 3_000, 6_000),
    ] {
        assert_eq!(policy.wait_ms(failures, 0), least, "failure {failures}");
        assert_eq!(policy.wait_ms(failures, most - least), most, "failure {failures}");
        assert_eq!(policy.wait_ms(failures, most - least + 1), least, "failure {failures}");
    }
}

#[test]
fn no_backoff_is_no_wait() {
    assert_eq!(policy(0, 6_000).wait_ms(3, 12_345), 0);
    assert_eq!(policy(5_000, 0).wait_ms(3, 12_345), 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_wait_is_between_half_and_the_whole_whatever_the_numbers(
        backoff_ms in any::<u64>(),
        backoff_ms_max in any::<u64>(),
        failures in any::<u32>(),
        chance in any::<u64>(),
    ) {
        let wait_ms = policy(backoff_ms, backoff_ms_max).wait_ms(failures, chance);
        prop_assert!(wait_ms <= backoff_ms_max);
        let whole = (u128::from(backoff_ms) << failures.saturating_sub(1).min(32))
            .min(u128::from(backoff_ms_max));
        prop_assert!(u128::from(wait_ms) <= whole && u128::from(wait_ms) >= whole / 2);
    }

    #[test]
    fn more_failures_never_shorten_the_wait_at_the_same_chance_of_nothing(
        backoff_ms in 0..100_000_u64,
        failures in 1..60_u32,
    ) {
        let policy = policy(backoff_ms, 600_000);
        prop_assert!(policy.wait_ms(failures + 1, 0) >= policy.wait_ms(failures, 0));
    }
}
