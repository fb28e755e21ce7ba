use std::sync::Arc;

use palisade_core::Timestamp;

use crate::conformance::ManualClock;

use super::{DatabaseClock, TimeSource};

#[test]
fn what_was_heard_is_carried_on_by_our_own_clock() {
    let ours = Arc::new(ManualClock::at(Timestamp(50)));
    let clock = DatabaseClock::new(Arc::<ManualClock>::clone(&ours), TimeSource::Database);
    clock.hear(Timestamp(1_000));
    ours.advance_ms(30);
    assert_eq!(clock.now(), Timestamp(1_030));
}

#[test]
fn a_database_whose_clock_is_behind_ours_does_not_take_time_back() {
    let ours = Arc::new(ManualClock::at(Timestamp(0)));
    let clock = DatabaseClock::new(Arc::<ManualClock>::clone(&ours), TimeSource::Database);
    clock.hear(Timestamp(1_000));
    ours.advance_ms(100);
    assert_eq!(clock.now(), Timestamp(1_100));
    clock.hear(Timestamp(1_050));
    assert_eq!(clock.now(), Timestamp(1_100));
    ours.advance_ms(60);
    assert_eq!(clock.now(), Timestamp(1_110));
}
