//! Who is granted a job, and when.

use super::{
    scene::check,
    world::{TTL_MS, World},
};
use crate::time::granted_span_ms;

#[test]
fn a_queued_job_is_granted_and_its_fence_is_the_token() {
    check(&[
        ("job", "queued, fence 0"),
        ("a claims", "granted 2"),
        ("job", "running, fence 2, open 2"),
    ]);
}

#[test]
fn a_job_that_is_held_goes_to_nobody_else_until_its_deadline() {
    check(&[
        ("a claims", "granted 2"),
        ("b claims", "nothing"),
        ("wait 30029", ""),
        ("b claims", "nothing"),
        ("wait 1", ""),
        ("b claims", "granted 5"),
        ("job", "running, fence 5, open 5, 1 lost"),
    ]);
}

#[test]
fn a_job_goes_again_to_the_same_worker_only_once_it_has_lapsed() {
    check(&[
        ("a claims", "granted 2"),
        ("a claims", "nothing"),
        ("wait 30030", ""),
        ("a claims", "granted 4"),
    ]);
}

#[test]
fn a_job_is_not_granted_before_it_is_due() {
    check(&[
        ("a claims", "granted 2"),
        ("a fails", "queued in 2500 ms"),
        ("wait 2499", ""),
        ("a claims", "nothing"),
        ("wait 1", ""),
        ("a claims", "granted 4"),
    ]);
}

#[test]
fn what_is_over_is_granted_to_nobody() {
    check(&[
        ("a claims", "granted 2"),
        ("a completes", "complete by 2"),
        ("wait 99999999", ""),
        ("b claims", "nothing"),
    ]);
    check(&[("withdraw 1", "1 withdrawn, cancelled"), ("b claims", "nothing")]);
    check(&[
        ("a claims", "granted 2"),
        ("a fails finally", "failed"),
        ("wait 99999999", ""),
        ("b claims", "nothing"),
    ]);
}

#[test]
fn a_grant_has_its_claimants_facts_and_a_deadline_that_allows_for_drift() {
    let mut world = World::new();
    let (id, ..) = world.submit(0, false);
    let (_, pair) = world.claim(id, "a");
    let attempt = world.job(id).attempt(pair.unwrap().token).unwrap();
    assert_eq!(attempt.lease_id, pair.unwrap().lease_id);
    assert_eq!(attempt.worker.as_str(), "a");
    assert_eq!(attempt.session.as_str(), "session-a");
    assert_eq!(attempt.claim.as_str(), "claim-2");
    assert_eq!((attempt.granted_at, attempt.backup), (world.now.at, false));
    let span_ms = granted_span_ms(TTL_MS);
    assert_eq!(span_ms, 30_030);
    assert_eq!(attempt.lease.deadline, world.now.at.plus_ms(span_ms));
}

#[test]
#[should_panic(expected = "the counter went backwards")]
fn a_counter_that_went_backwards_grants_nothing() {
    let mut world = World::new();
    let (id, ..) = world.submit(0, false);
    world.claim(id, "a");
    world.set_counter(1);
    world.wait(2 * TTL_MS);
    world.claim(id, "b");
}

#[test]
#[should_panic(expected = "the counter went backwards")]
fn a_counter_that_went_backwards_below_the_fence_alone_grants_nothing() {
    let mut world = World::new();
    let (id, ..) = world.submit(0, false);
    let (_, pair) = world.claim(id, "a");
    world.say(id, pair.unwrap(), super::world::Verb::Release).unwrap();
    // The fence is past token 2: the same number again would be refused by every outsider.
    world.set_counter(1);
    world.claim(id, "b");
}
