//! The one conditional commit.

use super::{
    scene::check,
    world::{World, manifest},
};
use crate::{
    Digest, Number,
    refusal::Refusal,
    transition::{Present, complete},
};

#[test]
fn an_open_attempt_completes_the_job_and_the_fence_goes_past_it() {
    check(&[
        ("a claims", "granted 2"),
        ("a completes", "complete by 2"),
        ("job", "complete, fence 3, completed by 2"),
    ]);
}

#[test]
fn who_was_replaced_decides_and_not_the_clock() {
    check(&[("a claims", "granted 2"), ("wait 99999999", ""), ("a completes", "complete by 2")]);
    check(&[
        ("a claims", "granted 2"),
        ("wait 30030", ""),
        ("b claims", "granted 3"),
        ("a completes", "stale_token: superseded, fence 3"),
        ("job", "running, fence 3, open 3, 1 lost"),
        ("b completes", "complete by 3"),
        ("a completes", "stale_token: superseded, fence 4, completed by 3"),
        ("job", "complete, fence 4, 1 lost, completed by 3"),
    ]);
}

#[test]
fn a_complete_whose_reply_was_lost_is_answered_again() {
    check(&[
        ("a claims", "granted 2"),
        ("a completes", "complete by 2"),
        ("wait 99999999", ""),
        ("a completes", "complete by 2"),
        // The blobs of the repeat are not looked at: the commit stands.
        ("a completes without blobs", "complete by 2"),
    ]);
}

#[test]
fn a_second_complete_with_other_outputs_gets_the_recorded_one_flagged() {
    check(&[
        ("a claims", "granted 2"),
        ("a completes", "complete by 2"),
        ("a completes otherwise", "complete by 2, other outputs"),
        ("a completes", "complete by 2"),
    ]);
}

#[test]
fn a_missing_blob_is_refused_and_the_attempt_stays_open() {
    check(&[
        ("a claims", "granted 2"),
        ("a completes without blobs", "missing_blob: 1 at manifest.outputs[0].digest"),
        ("job", "running, fence 2, open 2"),
        ("a beats", "held"),
        ("a completes", "complete by 2"),
    ]);
}

#[test]
fn a_stale_attempt_is_told_so_before_its_blobs_are_looked_at() {
    check(&[
        ("a claims", "granted 2"),
        ("withdraw 1", "1 withdrawn, cancelled"),
        ("a completes without blobs", "stale_token: cancelled, fence 3"),
    ]);
}

#[test]
fn a_token_without_its_lease_id_completes_nothing() {
    check(&[
        ("a claims", "granted 2"),
        ("x completes as a", "unknown_token"),
        ("job", "running, fence 2, open 2"),
        ("a completes", "complete by 2"),
        ("x completes as a", "unknown_token"),
    ]);
}

#[test]
fn missing_blobs_are_named_once_each_with_the_first_ones_field() {
    let mut world = World::new();
    let (id, ..) = world.submit(0, false);
    let pair = world.claim(id, "a").1.unwrap();
    let mut three = manifest(1);
    for (name, outputs) in [("b", 2), ("c", 3), ("d", 3)] {
        let output = manifest(outputs).outputs.remove(0);
        three.outputs.push(crate::manifest::Output { name: name.parse().unwrap(), ..output });
    }
    let present = Present::from([(Digest::of(&[1]), Number::ZERO)]);
    let refused = complete(world.job(id).clone(), &pair, three, &present, world.now.at);
    let expected = Refusal::MissingBlob {
        field: "manifest.outputs[1].digest".to_owned(),
        digests: vec![Digest::of(&[2]), Digest::of(&[3])],
    };
    assert_eq!(refused.unwrap_err(), expected);
}

#[test]
fn a_manifest_that_is_not_one_is_refused_and_the_attempt_stays_open() {
    let mut world = World::new();
    let (id, ..) = world.submit(0, false);
    let pair = world.claim(id, "a").1.unwrap();
    let empty = crate::manifest::Manifest::default();
    let refused = complete(world.job(id).clone(), &pair, empty, &Present::new(), world.now.at);
    assert_eq!(refused.unwrap_err().code(), "invalid");
}
