use proptest::prelude::*;

use super::*;

const TTL_MS: u64 = 30_000;
const SPAN_MS: u64 = 30_030;

fn at(at: u64, life: u64) -> Moment {
    Moment { at: Timestamp(at), life }
}

/// The store's clock was last recorded at `recorded_at`, in the life before, and it starts `at`.
fn start(recorded_at: u64, now: u64, life: u64) -> Start {
    Start { past_life: life - 1, recorded_at: Timestamp(recorded_at), now: at(now, life) }
}

#[test]
fn a_lease_ends_a_ttl_and_the_drift_after_its_grant_or_renewal() {
    let lease = Lease::granted(TTL_MS, at(1_000, 1));
    assert_eq!(lease.deadline, Timestamp(1_000 + SPAN_MS));
    assert!(lease.is_within(Timestamp(1_000 + SPAN_MS - 1)));
    assert!(!lease.is_within(Timestamp(1_000 + SPAN_MS)));
    let renewed = lease.renewed(at(90_000, 1));
    assert_eq!(renewed, Lease::granted(TTL_MS, at(90_000, 1)));
}

#[test]
fn the_first_renewal_of_a_life_must_be_durable_and_no_other() {
    let lease = Lease::granted(TTL_MS, at(1_000, 3));
    assert!(!lease.renewal_must_be_durable(at(2_000, 3)));
    assert!(lease.renewal_must_be_durable(at(2_000, 4)));
    let renewed = lease.renewed(at(2_000, 4));
    assert!(!renewed.renewal_must_be_durable(at(3_000, 4)));
    // A start alone is no sign of life.
    assert!(lease.after_start(start(2_000, 2_000, 4)).renewal_must_be_durable(at(2_000, 4)));
}

#[test]
fn who_was_granted_or_renewed_in_the_life_just_past_gets_a_whole_ttl() {
    let granted = Lease::granted(TTL_MS, at(0, 1));
    // Lapsed or not: what it renewed last may have been in memory alone.
    for recorded_at in [0, 29_000, 500_000] {
        let lease = granted.after_start(start(recorded_at, 900_000, 2));
        assert_eq!(lease.deadline, Timestamp(900_000 + SPAN_MS));
    }
}

#[test]
fn every_other_keeps_what_was_left_when_the_clock_was_last_recorded() {
    let lease = Lease::granted(TTL_MS, at(0, 1)).after_start(start(0, 100_000, 2));
    let later = lease.after_start(start(110_000, 900_000, 3));
    assert_eq!(later.deadline, Timestamp(900_000 + SPAN_MS - 10_000));
    let lapsed = lease.after_start(start(500_000, 900_000, 3));
    assert_eq!(lapsed.deadline, Timestamp(900_000));
    assert!(!lapsed.is_within(Timestamp(900_000)));
}

#[test]
fn a_deadline_from_a_clock_that_was_wrong_is_cut_to_a_ttl() {
    let mut lease = Lease::granted(TTL_MS, at(0, 1));
    lease.deadline = Timestamp(u64::MAX);
    assert_eq!(lease.after_start(start(5, 10, 3)).deadline, Timestamp(10 + SPAN_MS));
}

#[test]
fn a_suspected_lease_is_claimable_at_once_unless_it_was_renewed_since() {
    let lease = Lease::granted(TTL_MS, at(1_000, 1));
    let suspected = lease.suspected(Timestamp(5_000), Timestamp(7_000));
    assert_eq!(suspected.deadline, Timestamp(7_000));
    assert!(!suspected.is_within(Timestamp(7_000)));

    let renewed = lease.renewed(at(6_000, 1));
    assert_eq!(renewed.suspected(Timestamp(5_000), Timestamp(7_000)), renewed);
    // The suspicion passes with the next renewal.
    assert_eq!(suspected.renewed(at(8_000, 1)).deadline, Timestamp(8_000 + SPAN_MS));
}

#[test]
fn a_suspicion_never_prolongs_a_lease() {
    let lapsed = Lease::granted(TTL_MS, at(0, 1));
    assert_eq!(lapsed.suspected(Timestamp(80_000), Timestamp(90_000)), lapsed);
}

/// One life of a store: it serves, recording its clock as it goes, and is away. The worker renews
/// so many ms into it, if at all.
#[derive(Debug, Clone)]
struct Life {
    served_ms: u64,
    unrecorded_ms: u64,
    away_ms: u64,
    renewals: Vec<u64>,
}

fn lives() -> impl Strategy<Value = Vec<Life>> {
    let life = (0..50_000_u64, 0..1_000_u64, 0..500_000_u64);
    let life = (life, prop::collection::vec(0..50_000_u64, 0..3)).prop_map(
        |((served_ms, unrecorded_ms, away_ms), mut renewals)| {
            renewals.retain(|into| *into <= served_ms);
            renewals.sort_unstable();
            Life { served_ms, unrecorded_ms, away_ms, renewals }
        },
    );
    prop::collection::vec(life, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A store starts again and again, and the worker renews now and then. Renewals but the first
    /// of a life are lost with it.
    #[test]
    fn only_time_in_which_the_store_served_counts_and_flapping_keeps_nobody_for_ever(
        lives in lives(),
    ) {
        let mut now = 1_000;
        let mut written = Lease::granted(TTL_MS, at(now, 1));
        // Served without a word from the worker: in the life of its last word, and since.
        let (mut silent_ms, mut silent_since_ms, mut starts_since) = (0, 0, 0);
        for (life, index) in lives.iter().zip(1_u64..) {
            let (began, ended) = (now, now + life.served_ms);
            let mut held = written;
            for renewed_at in life.renewals.iter().map(|into| began + into) {
                let moment = at(renewed_at, index);
                if held.renewal_must_be_durable(moment) {
                    written = held.renewed(moment);
                }
                held = held.renewed(moment);
            }
            match life.renewals.last() {
                Some(into) => {
                    (silent_ms, silent_since_ms, starts_since) = (life.served_ms - into, 0, 0);
                }
                None if index == 1 => silent_ms = life.served_ms,
                None => {
                    silent_since_ms += life.served_ms;
                    starts_since += 1;
                }
            }
            let lost = !held.is_within(Timestamp(ended));
            if lost {
                prop_assert!(silent_ms + silent_since_ms >= SPAN_MS, "lost too early");
            }
            // One ttl in the life of its last word, and one since; a life may not have recorded
            // its last second.
            let kept_ms = SPAN_MS + 1_000 * starts_since;
            if silent_since_ms >= kept_ms || (starts_since == 0 && silent_ms >= SPAN_MS) {
                prop_assert!(lost, "kept too long");
            }
            let recorded = ended - life.unrecorded_ms.min(life.served_ms);
            now = ended + life.away_ms;
            written = written.after_start(start(recorded, now, index + 1));
        }
    }

    #[test]
    fn no_start_brings_a_deadline_before_what_its_holder_trusts(
        granted_at in 0..1_000_000_u64,
        served_ms in 0..100_000_u64,
        away_ms in 0..1_000_000_u64,
        lives_ago in 1..4_u64,
    ) {
        let lease = Lease::granted(TTL_MS, at(granted_at, 10 - lives_ago));
        let recorded = granted_at + served_ms;
        let after = lease.after_start(start(recorded, recorded + away_ms, 10));
        prop_assert!(after.deadline >= lease.deadline);
        prop_assert!(after.deadline <= Timestamp(recorded + away_ms + SPAN_MS));
    }
}
