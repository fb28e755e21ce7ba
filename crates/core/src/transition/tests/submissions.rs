//! Where a submission goes.

use super::scene::check;
use crate::transition::{Destination, decide};

#[test]
fn a_live_job_is_joined_before_anything_else_is_looked_at() {
    for (has_live, whole, fresh, expected) in [
        (true, false, false, Destination::Join),
        (true, true, false, Destination::Join),
        (true, false, true, Destination::Join),
        (true, true, true, Destination::Join),
        (false, true, false, Destination::Cache),
        (false, true, true, Destination::New),
        (false, false, false, Destination::New),
        (false, false, true, Destination::New),
    ] {
        assert_eq!(decide(has_live, whole, fresh), expected, "{has_live} {whole} {fresh}");
    }
}

#[test]
fn every_submission_draws_a_number_also_when_it_joins_or_is_cached() {
    check(&[
        ("submit", "joined 2"),
        ("a claims", "granted 3"),
        ("submit fresh", "joined 4"),
        ("a completes", "complete by 3"),
        ("submit", "cached 5"),
        ("job", "complete, fence 4, completed by 3"),
        ("submit fresh", "new 6"),
        ("job", "queued, fence 0"),
    ]);
}

#[test]
fn a_job_that_failed_or_was_cancelled_is_not_joined() {
    check(&[
        ("a claims", "granted 2"),
        ("a fails finally", "failed"),
        ("submit", "new 3"),
        ("withdraw 3", "1 withdrawn, cancelled"),
        ("submit", "new 4"),
    ]);
}

#[test]
#[should_panic(expected = "nobody joins a job that is over")]
fn joining_a_job_that_is_over_is_a_bug() {
    let mut world = super::world::World::new();
    let (id, ..) = world.submit(0, false);
    world.cancel(id, crate::transition::Which::All).unwrap();
    let job = world.job(id).clone();
    let _ = crate::transition::join(job, crate::Number::new(9).unwrap(), None, world.now.at);
}
