//! What a heartbeat is told, and what it does to the lease.

use super::{
    scene::check,
    world::{TTL_MS, Told, Verb, World},
};
use crate::{
    history::What,
    time::granted_span_ms,
    transition::{Beat, heartbeat},
};

#[test]
fn a_heartbeat_holds_the_lease_for_a_ttl_from_now() {
    check(&[
        ("a claims", "granted 2"),
        ("wait 20000", ""),
        ("a beats", "held"),
        ("wait 30029", ""),
        ("b claims", "nothing"),
        ("wait 1", ""),
        ("b claims", "granted 4"),
    ]);
}

#[test]
fn a_heartbeat_after_the_deadline_holds_as_long_as_nobody_has_replaced_it() {
    check(&[
        ("a claims", "granted 2"),
        ("wait 90000", ""),
        ("a beats", "held"),
        ("b claims", "nothing"),
        ("wait 30030", ""),
        ("b claims", "granted 4"),
        ("a beats", "lost: superseded, fence 4"),
    ]);
}

#[test]
fn a_heartbeat_tells_what_closed_the_attempt_as_things_are_now() {
    check(&[
        ("a claims", "granted 2"),
        ("a fails", "queued in 2500 ms"),
        ("a beats", "lost: failed, fence 3"),
        ("wait 2500", ""),
        ("b claims", "granted 3"),
        ("a beats", "lost: failed, fence 3"),
        ("b completes", "complete by 3"),
        ("a beats", "lost: failed, fence 4, completed by 3"),
        ("b beats", "lost: completed, fence 4, completed by 3"),
    ]);
}

#[test]
fn a_heartbeat_hears_of_the_cancel_also_after_the_job_was_revived() {
    check(&[
        ("a claims", "granted 2"),
        ("withdraw 1", "1 withdrawn, cancelled"),
        ("a beats", "cancelled"),
        ("retry 1", "queued"),
        ("b claims", "granted 3"),
        ("a beats", "cancelled"),
    ]);
}

#[test]
fn a_strangers_heartbeat_renews_nothing() {
    check(&[
        ("a claims", "granted 2"),
        ("wait 20000", ""),
        ("x beats as a", "unknown_token"),
        ("wait 10030", ""),
        ("b claims", "granted 3"),
    ]);
}

#[test]
fn only_the_first_renewal_of_a_life_is_journalled() {
    let mut world = World::new();
    let (id, ..) = world.submit(0, false);
    let pair = world.claim(id, "a").1.unwrap();
    let renew = |world: &World| heartbeat(world.job(id).clone(), &pair, world.now).unwrap();

    // The grant itself is durable, and of this life.
    world.wait(10_000);
    let applied = renew(&world);
    assert!(applied.history.is_empty());
    let lease = applied.job.attempt(pair.token).unwrap().lease;
    assert_eq!(lease.deadline, world.now.at.plus_ms(granted_span_ms(TTL_MS)));

    world.restart(5_000);
    let applied = renew(&world);
    assert_eq!(applied.history.len(), 1);
    assert_eq!(applied.history[0].what, What::Renewed { token: pair.token });
    assert_eq!(applied.job.attempt(pair.token).unwrap().lease.life, 2);

    assert_eq!(world.say(id, pair, Verb::Beat), Ok(Told::Beat(Beat::Held)));
    assert!(renew(&world).history.is_empty());
}
