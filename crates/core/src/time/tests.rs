use proptest::prelude::*;

use super::*;

#[test]
fn instants_do_not_wrap() {
    assert_eq!(Timestamp(u64::MAX - 1).plus_ms(5), Timestamp(u64::MAX));
    assert_eq!(Timestamp(5).since_ms(Timestamp(9)), 0);
    assert_eq!(Timestamp(9).since_ms(Timestamp(5)), 4);
}

#[test]
fn spans_have_the_lengths_that_the_documents_tell() {
    assert_eq!(granted_span_ms(30_000), 30_030);
    assert_eq!(trusted_span_ms(30_000), 30_000 - 30 - 1_000);
    assert_eq!(trusted_span_ms(500), 500 - 1 - 25);
    assert_eq!((granted_span_ms(0), trusted_span_ms(0), trusted_span_ms(1)), (0, 0, 0));
    assert_eq!(granted_span_ms(u64::MAX), u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_holder_whose_clock_is_slow_still_stops_before_the_grantor_frees(
        ttl_ms in 500..100_000_000_u64,
    ) {
        // The holder's clock shows less than what has passed: at most 1/1000 less.
        let passed_ms = trusted_span_ms(ttl_ms).saturating_mul(1_000) / 999;
        prop_assert!(passed_ms < ttl_ms);
        prop_assert!(granted_span_ms(ttl_ms) > ttl_ms);
        prop_assert!(granted_span_ms(ttl_ms) <= ttl_ms + ttl_ms / 1_000 + 1);
        // And gives up no more than a tenth for it.
        prop_assert!(trusted_span_ms(ttl_ms) >= ttl_ms - ttl_ms / 10);
    }
}

#[test]
fn instants_are_written_as_rfc_3339_does() {
    for (ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (1_764_683_696_789, "2025-12-02T13:54:56.789Z"),
        (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
    ] {
        assert_eq!(Timestamp(ms).rfc3339(), text);
    }
}
