//! The three cases of a worker's verb, for every verb and everything that closes an attempt.

use super::{
    scene::check_with_backup,
    world::{TTL_MS, Verb, World},
};
use crate::{JobId, job::FailureKind, lease::Pair};

/// What closes a's attempt, as lines after `a claims`, which is token 2.
const CLOSED_BY: [(&str, &[(&str, &str)]); 6] = [
    ("completed", &[("a completes", "complete by 2")]),
    ("failed", &[("a fails", "queued in 2500 ms")]),
    ("released", &[("a releases", "queued")]),
    ("superseded", &[("wait 30030", ""), ("b claims", "granted 3")]),
    ("outrun", &[("wait 1000", ""), ("b claims", "granted 3"), ("b completes", "complete by 3")]),
    ("cancelled", &[("withdraw 1", "1 withdrawn, cancelled")]),
];

const VERBS: [(&str, &str, &str); 3] = [
    ("a completes", "completed", "complete by 2"),
    ("a fails", "failed", "queued in 2500 ms"),
    ("a releases", "released", "queued"),
];

#[test]
fn a_verb_repeats_its_own_answer_and_is_refused_whatever_else_closed_the_attempt() {
    for (closed, lines) in CLOSED_BY {
        for (verb, own, answer) in VERBS {
            let expected = match closed {
                closed if closed == own => answer,
                "completed" => "stale_token: completed, fence 3, completed by 2",
                "failed" => "stale_token: failed, fence 3",
                "released" => "stale_token: released, fence 3",
                "superseded" => "stale_token: superseded, fence 3",
                "outrun" => "already_complete by 3",
                _ => "stale_token: cancelled, fence 3",
            };
            let mut scene = vec![("a claims", "granted 2")];
            scene.extend(lines);
            scene.extend([(verb, expected), (verb, expected)]);
            check_with_backup(1_000, &scene);
        }
    }
}

#[test]
fn a_refusal_tells_who_completed_the_job_since() {
    for closing in ["a fails", "a releases"] {
        let (told, wait) = if closing == "a fails" {
            ("queued in 2500 ms", "wait 2500")
        } else {
            ("queued", "wait 0")
        };
        let reason = if closing == "a fails" { "failed" } else { "released" };
        let before = format!("stale_token: {reason}, fence 3");
        let after = format!("stale_token: {reason}, fence 4, completed by 3");
        super::scene::check(&[
            ("a claims", "granted 2"),
            (closing, told),
            (wait, ""),
            ("b claims", "granted 3"),
            ("a completes", &before),
            ("b completes", "complete by 3"),
            ("a completes", &after),
        ]);
    }
}

const EVERY_VERB: [Verb; 4] = [
    Verb::Beat,
    Verb::Complete { outputs: 1, present: true },
    Verb::Fail { kind: FailureKind::Final, chance: 0 },
    Verb::Release,
];

/// Every verb with a pair that does not belong to the job is refused as unknown.
#[track_caller]
fn check_unknown(world: &mut World, job: JobId, pair: Pair) {
    for verb in EVERY_VERB {
        let before = world.job(job).clone();
        let refused = world.say(job, pair, verb).unwrap_err();
        assert_eq!(refused.code(), "unknown_token", "{verb:?}");
        assert_eq!(*world.job(job), before);
    }
}

#[test]
fn job_token_and_lease_id_must_all_belong_together() {
    let mut world = World::new();
    let (one, ..) = world.submit(0, false);
    let (other, ..) = world.submit(1, false);
    let pair = world.claim(one, "a").1.unwrap();
    let others = world.claim(other, "a").1.unwrap();
    check_unknown(&mut world, one, others);
    check_unknown(&mut world, other, pair);
    check_unknown(&mut world, one, Pair { lease_id: others.lease_id, ..pair });
    check_unknown(&mut world, one, Pair { token: others.token, ..pair });
    check_unknown(&mut world, one, Pair { token: pair.token.next(), ..pair });
    check_unknown(&mut world, one, Pair { token: crate::Number::MAX, ..pair });
    check_unknown(&mut world, one, Pair { token: crate::Number::ZERO, ..pair });
    world.say(one, pair, Verb::Beat).unwrap();
    world.say(other, others, Verb::Beat).unwrap();
}

#[test]
fn an_old_attempts_lease_id_does_not_open_the_new_one() {
    let mut world = World::new();
    let (job, ..) = world.submit(0, false);
    let old = world.claim(job, "a").1.unwrap();
    world.wait(2 * TTL_MS);
    let new = world.claim(job, "b").1.unwrap();
    check_unknown(&mut world, job, Pair { token: new.token, lease_id: old.lease_id });
    check_unknown(&mut world, job, Pair { token: old.token, lease_id: new.lease_id });
}
