//! What exploring finds, and that it finds it by itself.

use super::{Config, Outcome, World, run, run_one};
use crate::designs::Design;

fn story_of(design: Design) -> Vec<String> {
    let outcome = run_one(World::Design(design), None, 100_000);
    outcome.violation.expect("it is known for one").story
}

#[test]
fn a_crashed_holder_of_a_lock_without_expiry_stalls_the_job() {
    assert_eq!(story_of(Design::LockForever), ["A claims the job, and is granted it", "A crashes"]);
}

#[test]
fn a_paused_holder_of_a_lease_wakes_and_writes() {
    let story = story_of(Design::Lease).join("\n");
    let order = ["A claims", "the lease expires", "B claims", "B writes", "A wakes", "A writes"];
    let places: Vec<_> = order.iter().map(|step| story.find(step)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{story}");
}

#[test]
fn a_heartbeat_does_not_close_the_gap_between_the_look_and_the_write() {
    let story = story_of(Design::LeaseHeartbeat).join("\n");
    let order = ["A looks: it holds the lease", "the lease expires", "B claims", "A wakes"];
    let places: Vec<_> = order.iter().map(|step| story.find(step)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{story}");
}

fn whole(outcome: &Outcome) {
    assert_eq!(outcome.violation, None);
    assert!(outcome.complete, "{} states were not all", outcome.states);
}

#[test]
fn palisades_designs_and_their_blobs_hold_in_every_schedule() {
    let worlds = vec![
        World::Design(Design::LeaseFenced),
        World::Design(Design::Queue),
        World::Design(Design::LyingDispatch),
        World::Blobs,
        World::Delivery,
        World::Histories,
    ];
    let report = run(&Config { worlds, ..Config::default() });
    report.worlds.iter().for_each(|explored| whole(&explored.outcome));
    assert!(report.is_as_expected());
    let text = report.text();
    assert!(text.contains("all of them, and no violation"), "{text}");
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    let outcome = run_one(World::Attempts, None, 500);
    assert!(!outcome.complete);
    assert!(outcome.states >= 500);
}

#[test]
fn the_same_world_is_searched_in_the_same_order() {
    let search = || run_one(World::Wishes, None, 2_000);
    assert_eq!(search(), search());
}
