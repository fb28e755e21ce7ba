//! The keeper's word and the rules together: as long as the clocks keep within their bound, a
//! keeper that says `may_act` holds the only open attempt at that instant, whatever the network,
//! the pauses and the store's crashes do. What happens between the look and the act is the
//! fence's business.

use proptest::prelude::*;

use super::virtual_net::{Net, Seen, Weather};

const HALF_AN_HOUR_MS: u64 = 30 * 60 * 1_000;

fn weather() -> impl Strategy<Value = Weather> {
    let ttl = prop_oneof![Just(500_u64), 500..5_000_u64, Just(30_000)];
    let drift = || prop_oneof![Just(-1_000_i64), Just(1_000), -1_000..=1_000_i64];
    let delay = prop_oneof![0..1_000_u64, 0..20_000_u64];
    let rare = || prop_oneof![5..50_u64, 100..1_000_u64];
    (any::<u64>(), ttl, [drift(), drift()], delay, 0..50_u64, (rare(), rare())).prop_map(
        |(seed, ttl_ms, drift_ppm, delay_ms_max, lost, (pause_each, crash_each))| Weather {
            seed,
            ttl_ms,
            drift_ppm,
            delay_ms_max,
            lost,
            pause_each,
            crash_each,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(150)
    })]

    #[test]
    fn who_may_act_holds_the_only_open_attempt_and_after_the_storm_somebody_does(
        weather in weather(),
    ) {
        let mut net = Net::new(weather);
        net.run(40 * weather.ttl_ms);
        net.clear_up();
        // What is still on its way or paused, a claim's patience, and two ttls.
        net.run(200_000 + 5 * weather.ttl_ms);
        prop_assert_eq!(net.acting().len(), 1, "{:?}", net.seen);
    }
}

#[test]
fn a_stormy_half_hour_sees_takeovers_pauses_crashes_and_aborts() {
    let weather = Weather {
        seed: 7,
        ttl_ms: 2_000,
        drift_ppm: [-1_000, 1_000],
        delay_ms_max: 3_000,
        lost: 20,
        pause_each: 20,
        crash_each: 50,
    };
    let mut net = Net::new(weather);
    net.run(HALF_AN_HOUR_MS);
    let Seen { grants, looks_that_may_act, pauses, crashes, aborts } = net.seen;
    assert!(grants > 20 && looks_that_may_act > 1_000, "{:?}", net.seen);
    assert!(pauses > 50 && crashes > 10 && aborts > 10, "{:?}", net.seen);
}

#[test]
fn in_fair_weather_one_worker_keeps_the_job_for_good() {
    let weather = Weather {
        seed: 7,
        ttl_ms: 2_000,
        drift_ppm: [-1_000, 1_000],
        delay_ms_max: 50,
        lost: 0,
        pause_each: u64::MAX,
        crash_each: u64::MAX,
    };
    let mut net = Net::new(weather);
    net.run(HALF_AN_HOUR_MS);
    let quiet =
        Seen { looks_that_may_act: net.seen.looks_that_may_act, grants: 1, ..Seen::default() };
    assert_eq!(net.seen, quiet);
}
