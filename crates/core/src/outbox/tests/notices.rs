//! Which moves are told to whom, and what is said.

use serde_json::{Value, json};

use super::*;
use crate::{
    Digest, Tenant,
    job::{Failure, FailureKind, Job},
    lease::{Moment, Pair},
    manifest::{Manifest, Output},
    retry::RetryPolicy,
    spec::Spec,
    transition::{self, Claimant, Fresh, Present, Which, Wish},
};

fn wish() -> Wish {
    Wish {
        tenant: Tenant::default_tenant(),
        spec: Spec {
            recipe: "h264-720p".parse().unwrap(),
            definition: Digest::of(b"definition"),
            inputs: [].into(),
            parameters: [].into(),
        },
        retry: RetryPolicy { losses_allowed: 0, ..RetryPolicy::default() },
        backup_after_ms: None,
        priority: 0,
        run_at: NOW,
        fresh: false,
        publish: None,
    }
}

/// Job j1 with the submissions 1, 2 and 3, of which 2 was withdrawn.
fn job() -> Job {
    let job = transition::create(number(1), wish(), NOW).job;
    let job = transition::join(job, number(2), None, NOW).job;
    let job = transition::join(job, number(3), None, NOW).job;
    transition::cancel(job, Which::One(number(2)), NOW).unwrap().job
}

fn claimed(job: Job, token: u64) -> (Job, Pair) {
    let by = Claimant {
        worker: "a".parse().unwrap(),
        session: "session".parse().unwrap(),
        request_id: "claim".parse().unwrap(),
        seq: 0,
        ttl_ms: 1_000,
    };
    let fresh = Fresh { token: number(token), lease_id: lease_id(9) };
    let job = transition::claim(job, by, fresh, Moment { at: NOW, life: 1 }).job;
    (job, Pair { token: number(token), lease_id: lease_id(9) })
}

fn manifest(outputs: usize) -> (Manifest, Present) {
    let output = |index| Output {
        name: format!("{index}.ts").parse().unwrap(),
        digest: Digest::of(b"bytes"),
        size_bytes: 5,
        media_type: "video/mp2t".to_owned(),
        facts: [].into(),
    };
    let outputs = (0..outputs).map(output).collect();
    let present = Present::from([(Digest::of(b"bytes"), number(8))]);
    (Manifest { outputs, ..Manifest::default() }, present)
}

fn complete(job: Job, pair: Pair, outputs: usize) -> Job {
    let (manifest, present) = manifest(outputs);
    transition::complete(job, &pair, manifest, &present, NOW).unwrap().job
}

fn fail(job: Job, pair: Pair) -> Job {
    let failure = Failure {
        reason: "bad_input".to_owned(),
        message: "no such stream".to_owned(),
        kind: FailureKind::Final,
    };
    transition::fail(job, &pair, failure, 0, NOW).unwrap().job
}

/// Who is told: (submission, event, token).
fn whom(before: &Job, after: &Job) -> Vec<(u64, &'static str, Option<u64>)> {
    let told = told(Some(before), after).into_iter();
    told.map(|told| (told.submission.get(), told.event.as_str(), told.token.map(Number::get)))
        .collect()
}

#[test]
fn a_completion_is_told_to_each_submission_that_still_stands_with_the_token_that_did_it() {
    let (before, pair) = claimed(job(), 4);
    let after = complete(before.clone(), pair, 1);
    let expected = [(1, "job.completed", Some(4)), (3, "job.completed", Some(4))];
    assert_eq!(whom(&before, &after), expected);
}

#[test]
fn what_changes_nothing_is_told_to_nobody() {
    let (running, pair) = claimed(job(), 4);
    assert_eq!(whom(&job(), &running), []);
    assert_eq!(told(None, &job()), []);
    let after = complete(running, pair, 1);
    assert_eq!(whom(&after, &after), []);
    let withdrawn = transition::cancel(after.clone(), Which::All, NOW).unwrap().job;
    assert_eq!(whom(&after, &withdrawn), [], "a complete job stays complete");
}

#[test]
fn a_wish_that_a_finished_job_answers_is_told_alone() {
    let (before, pair) = claimed(job(), 4);
    let complete = complete(before, pair, 1);
    let cached = transition::join(complete.clone(), number(7), None, NOW).job;
    assert_eq!(whom(&complete, &cached), [(7, "job.completed", Some(4))]);
}

#[test]
fn a_failure_is_told_with_the_token_that_failed_and_a_requeue_is_not_told() {
    let (before, pair) = claimed(job(), 4);
    let after = fail(before.clone(), pair);
    assert_eq!(whom(&before, &after), [(1, "job.failed", Some(4)), (3, "job.failed", Some(4))]);
    let ask = transition::Retry { submission: None, newest_with_key: after.id };
    let queued = transition::retry(after.clone(), ask, NOW).unwrap().job;
    assert_eq!(whom(&after, &queued), []);
    let withdrawn = transition::cancel(after.clone(), Which::All, NOW).unwrap().job;
    assert_eq!(whom(&after, &withdrawn), [], "it has failed already");
}

#[test]
fn a_job_lost_too_often_is_told_with_the_token_that_was_lost() {
    let (before, _) = claimed(job(), 4);
    let after = transition::expire(before.clone(), NOW.plus_ms(60_000)).job;
    assert_eq!(whom(&before, &after), [(1, "job.failed", Some(4)), (3, "job.failed", Some(4))]);
}

#[test]
fn a_cancellation_is_told_to_those_who_were_withdrawn_by_it() {
    let (before, _) = claimed(job(), 4);
    let one = transition::cancel(before.clone(), Which::One(number(1)), NOW).unwrap().job;
    assert_eq!(whom(&before, &one), [], "somebody still wants it");
    let none = transition::cancel(one.clone(), Which::One(number(3)), NOW).unwrap().job;
    assert_eq!(whom(&one, &none), [(3, "job.cancelled", None)]);
    let all = transition::cancel(before.clone(), Which::All, NOW).unwrap().job;
    assert_eq!(whom(&before, &all), [(1, "job.cancelled", None), (3, "job.cancelled", None)]);
}

fn said(before: &Job, after: &Job) -> Value {
    let told = told(Some(before), after)[0];
    let notice = notice(after, told, number(11), Timestamp(1_669_852_800_123));
    assert_eq!((notice.seq, notice.submission), (number(11), told.submission));
    serde_json::from_str(&notice.body).unwrap()
}

#[test]
fn the_body_says_what_a_receiver_needs() {
    let (before, pair) = claimed(job(), 4);
    let expected = json!({
        "type": "job.completed",
        "timestamp": "2022-12-01T00:00:00.123Z",
        "data": {
            "job": "j1", "tenant": "default", "recipe": "h264-720p", "submission": 1, "token": 4,
            "seq": 11, "at_ms": 1_669_852_800_123_u64, "state": "complete",
            "completion": {
                "worker": "a", "at_ms": NOW.0, "outputs_total": 1,
                "outputs": [{
                    "name": "0.ts", "digest": Digest::of(b"bytes").to_string(), "size_bytes": 5,
                    "media_type": "video/mp2t",
                }],
            },
        },
    });
    assert_eq!(said(&before, &complete(before.clone(), pair, 1)), expected);
    let failure = &said(&before, &fail(before.clone(), pair))["data"]["failure"];
    assert_eq!(failure, &json!({ "reason": "bad_input", "message": "no such stream" }));
}

#[test]
fn a_folder_of_segments_does_not_make_a_body_long() {
    let (before, pair) = claimed(job(), 4);
    let body = said(&before, &complete(before.clone(), pair, 500));
    let completion = &body["data"]["completion"];
    assert_eq!(completion["outputs_total"], 500);
    assert_eq!(completion["outputs"].as_array().unwrap().len(), 32);
    assert!(body.to_string().len() < 20_000, "the length that the specification recommends");
}

#[test]
fn progress_is_told_to_those_who_still_want_it_while_its_attempt_is_open() {
    let (running, pair) = claimed(job(), 4);
    let came = Progress { share: Some(0.5), speed: None, left_ms: None };
    let told = progress(&running, number(4), came, (number(9), NOW));
    let whom: Vec<_> = told.iter().map(|notice| notice.submission.get()).collect();
    assert_eq!(whom, [1, 3]);
    let body: Value = serde_json::from_str(&told[0].body).unwrap();
    assert_eq!(body["data"]["progress"], json!({ "share": 0.5 }));
    assert_eq!(progress(&running, number(5), came, (number(9), NOW)), []);
    assert_eq!(progress(&complete(running, pair, 1), number(4), came, (number(9), NOW)), []);
}
