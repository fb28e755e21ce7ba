use super::*;

#[test]
fn quantiles_of_few_samples_are_exact() {
    let mut samples = Samples::default();
    for ms in 1..=100 {
        samples.add(ms * 10);
    }
    assert_eq!(samples.quantile_ms(50), Some(500));
    assert_eq!(samples.quantile_ms(99), Some(990));
    assert_eq!(samples.between(100, 200), 10);
    assert_eq!(samples.max_ms(), 1_000);
}

#[test]
fn quantiles_of_many_samples_are_within_a_sixteenth() {
    let mut samples = Samples::default();
    for ms in 0..200_000 {
        samples.add(ms);
    }
    let median = samples.quantile_ms(50).unwrap();
    assert!((100_000..=106_250).contains(&median), "{median}");
}

#[test]
fn every_span_lies_in_its_bucket() {
    for ms in (0..100_000).chain([u64::MAX / 2, 1 << 40]) {
        let bucket = bucket_of(ms);
        assert!(bucket_end(bucket) >= ms, "{ms}");
        assert!(bucket == 0 || bucket_end(bucket - 1) < ms, "{ms}");
    }
}

#[test]
fn a_silence_on_one_resource_is_none_if_the_worker_spoke_elsewhere() {
    let mut tracks = Tracks::default();
    for at in [0, 1_000, 41_000, 42_000] {
        tracks.seen(0, Timestamp(at));
    }
    assert_eq!(tracks.silence_ms(0, Timestamp(500), Timestamp(42_000)), 40_000);
    for at in (50_000..90_000).step_by(1_000) {
        tracks.seen(0, Timestamp(at));
    }
    assert_eq!(tracks.silence_ms(0, Timestamp(50_000), Timestamp(90_000)), 1_000);
}
