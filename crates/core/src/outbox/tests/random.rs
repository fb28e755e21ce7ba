//! Whatever deliverers do in whatever order: what is sent never changes, only a lease's holder
//! settles, and every row comes to an end.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Pass(u64),
    Lease,
    /// By the deliverer of the n-th lease; true: it was taken.
    Settle(usize, bool, u64),
    Again,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop_oneof![Just(1), Just(20_000), 0..200_000_000u64].prop_map(Step::Pass),
        3 => Just(Step::Lease),
        3 => (0..4usize, prop::bool::weighted(0.2), any::<u64>())
            .prop_map(|(which, taken, chance)| Step::Settle(which, taken, chance)),
        1 => Just(Step::Again),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_row_keeps_what_it_says_and_only_its_lease_settles_it(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let (first, mut now, mut leases) = (row(), NOW, 0_u128);
        let mut row = first.clone();
        for step in steps {
            let before = row.clone();
            match step {
                Step::Pass(ms) => now = now.plus_ms(ms),
                Step::Lease if row.is_due(now) => {
                    leases += 1;
                    row = match lease(row, lease_id(leases), 20_000, now) {
                        Leasing::Leased(row) => row,
                        Leasing::Dead(row, _) => {
                            prop_assert_eq!(before.tries, TRIES_MAX);
                            row
                        }
                    };
                }
                Step::Lease => {}
                Step::Settle(which, taken, chance) => {
                    let id = lease_id(leases.saturating_sub(which as u128));
                    let tried = if taken { Tried::Taken } else { failed() };
                    let own = before.standing == Standing::Leased(id);
                    match settle(row.clone(), id, tried, chance, now) {
                        Settled::Ignored => prop_assert!(!own),
                        Settled::Later(later) => {
                            prop_assert!(own && !taken);
                            let wait_ms = later.due_at.since_ms(now);
                            prop_assert!((5_000..=24 * 3_600_000 * 6 / 5).contains(&wait_ms));
                            row = later;
                        }
                        Settled::Over(over, _) => {
                            prop_assert!(own);
                            prop_assert!(!over.is_open());
                            row = over;
                        }
                    }
                }
                Step::Again => {
                    if let Some((again, _)) = again(row.clone(), now) {
                        row = again;
                    }
                }
            }
            prop_assert_eq!(row.id(), first.id());
            prop_assert_eq!(&row.notice, &first.notice);
            prop_assert!(row.tries <= TRIES_MAX);
        }
    }

    #[test]
    fn a_row_that_nobody_takes_comes_to_its_end(chances in prop::collection::vec(any::<u64>(), 10)) {
        let (mut row, mut now) = (row(), NOW);
        let mut chances = chances.into_iter();
        while row.is_open() {
            row = leased(row, 1, now);
            let chance = chances.next().expect("ten tries at most");
            row = match settle(row, lease_id(1), failed(), chance, now) {
                Settled::Later(row) | Settled::Over(row, _) => row,
                Settled::Ignored => panic!("it is its own lease"),
            };
            now = now.max(row.due_at);
        }
        prop_assert_eq!(row.standing, Standing::Dead);
        prop_assert!(now.since_ms(NOW) < 5 * 24 * 3_600_000);
    }
}
