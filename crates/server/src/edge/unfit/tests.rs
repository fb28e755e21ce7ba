//! What callers are told of every JSON body that does not fit.

use palisade_api::wire::{
    AcquireRequest, CancelRequest, ClaimRequest, CompleteRequest, FailRequest, FinishRequest,
    HeartbeatRequest, PairWire, PinRequest, ProgressRequest, ReleaseRequest, RetryRequest,
    RotateRequest, SubmitRequest, WebhookRequest,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::*;
use crate::edge::json_from_slice;

/// What is told of a body that is read as `T`. None: it fits.
fn told<T: DeserializeOwned>(body: &Value) -> Option<Problem> {
    let text = body.to_string();
    json_from_slice::<T>(text.as_bytes()).err().map(Rejection::into_problem)
}

fn detail<T: DeserializeOwned>(body: &Value) -> String {
    told::<T>(body).expect("it does not fit").detail
}

#[test]
fn the_field_what_it_was_given_and_what_it_takes_are_named() {
    let acquire = |field: &str, value: Value| {
        let mut body = json!({ "holder": "alice", "ttl_ms": 30_000 });
        body[field] = value;
        detail::<AcquireRequest>(&body)
    };
    let whole = "must be a whole number, 0 or more";
    let cases = [
        ("holder", json!(7), "holder: 7 is not allowed; must be a string".to_owned()),
        ("holder", json!(null), "holder: null is not allowed; must be a string".to_owned()),
        ("holder", json!({}), "holder: an object is not allowed; must be a string".to_owned()),
        ("holder", json!(true), "holder: true is not allowed; must be a string".to_owned()),
        ("ttl_ms", json!("30s"), format!("ttl_ms: \"30s\" is not allowed; {whole}")),
        ("ttl_ms", json!(-1), format!("ttl_ms: -1 is not allowed; {whole}")),
        ("ttl_ms", json!(1.5), format!("ttl_ms: 1.5 is not allowed; {whole}")),
        ("wait_ms", json!([1]), format!("wait_ms: a list is not allowed; {whole}")),
    ];
    for (field, value, expected) in cases {
        assert_eq!(acquire(field, value), expected);
    }
    let unknown = acquire("ttl", json!(5));
    let known = "must be one of holder, ttl_ms, wait_ms, request_id";
    assert_eq!(unknown, format!("ttl: is not known; {known}"));
    let missing = detail::<AcquireRequest>(&json!({ "ttl_ms": 30_000 }));
    assert_eq!(missing, "holder: is missing; must be given");
    for body in [json!([]), json!(["alice", 30_000, 0, null]), json!("x"), json!(5), json!(null)] {
        let told = told::<AcquireRequest>(&body).expect("it is no object");
        assert_eq!((told.status, &told.facts["field"]), (422, &json!("body")), "{told:?}");
        assert!(told.detail.ends_with("must be an object"), "{}", told.detail);
    }
    let twice = json_from_slice::<PairWire>(br#"{"token":1,"token":2,"lease":"x"}"#);
    let twice = twice.expect_err("twice").into_problem().detail;
    assert_eq!(twice, "token: is given twice; must be given once");
}

#[test]
fn a_long_value_is_cut_and_the_facts_have_it_too() {
    let body = json!({ "holder": "alice", "ttl_ms": "ä".repeat(5_000) });
    let told = told::<AcquireRequest>(&body).expect("it does not fit");
    assert!(told.detail.chars().count() < 200, "{}", told.detail);
    assert_eq!(told.facts["field"], "ttl_ms");
    assert!(told.facts["value"].as_str().is_some_and(|value| value.ends_with("…\"")), "{told:?}");
    assert_eq!(told.facts["allowed"], "must be a whole number, 0 or more");
}

#[test]
fn a_nested_field_has_its_path() {
    let input = json!({ "recipe": "copy", "inputs": { "source": 7 } });
    let expected = "inputs.source: 7 is not allowed; must be an object";
    assert_eq!(detail::<SubmitRequest>(&input), expected);
    let events = json!({ "url": "http://x", "events": ["job.completed", 5] });
    let expected = "events[1]: 5 is not allowed; must be a string";
    assert_eq!(detail::<WebhookRequest>(&events), expected);
}

#[test]
fn a_choice_lists_what_may_be_chosen() {
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Colour {
        Red,
        DarkBlue,
    }
    #[derive(Debug, Deserialize)]
    struct Paint {
        #[expect(dead_code, reason = "it is read, not used")]
        colour: Colour,
    }
    let told = detail::<Paint>(&json!({ "colour": "green" }));
    assert_eq!(told, "colour: \"green\" is not allowed; must be one of red or dark_blue");
}

/// Puts something wrong into each place of a good body, one at a time.
fn spoilt(good: &Value) -> Vec<Value> {
    let wrong =
        [json!(null), json!(-1.5), json!("x"), json!(true), json!([[]]), json!({ "colour": 1 })];
    let mut all = wrong.to_vec();
    match good {
        Value::Object(fields) => {
            for (name, value) in fields {
                for worse in spoilt(value) {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), worse);
                    all.push(Value::Object(fields));
                }
                let mut fewer = fields.clone();
                fewer.remove(name);
                all.push(Value::Object(fewer));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                for worse in spoilt(item) {
                    let mut items = items.clone();
                    items[index] = worse;
                    all.push(Value::Array(items));
                }
            }
        }
        _ => {}
    }
    all
}

/// Spoils a body everywhere. Answers what was told.
fn all_told<T: DeserializeOwned>(good: &Value) -> Vec<Problem> {
    assert_eq!(told::<T>(good), None, "{good} is a good body");
    spoilt(good).iter().filter_map(told::<T>).collect()
}

/// What workers send.
fn told_to_workers() -> Vec<(&'static str, Vec<Problem>)> {
    let pair = json!({ "token": 1, "lease": "5c0e" });
    let lease = json!({ "job": "j1", "token": 1, "lease": "5c0e" });
    let pause = json!({ "job": "j1", "token": 1, "lease": "5c0e", "pause_ms": 5 });
    let output = json!({
        "name": "a.mp4", "digest": palisade_core::Digest::of(b"a").to_string(), "size_bytes": 1,
        "media_type": "video/mp4", "facts": { "width": "320" },
    });
    let claim = json!({
        "worker": "w", "session": "s", "request_id": "r", "seq": 1, "ttl_ms": 5, "wait_ms": 5,
        "max_jobs": 1, "recipes": [{ "recipe": "copy", "definition": "d" }],
    });
    let beat = json!({
        "session": "s", "seq": 1, "leases": [lease], "pending": ["r"], "pauses": [pause],
    });
    let complete = json!({ "token": 1, "lease": "5c0e", "manifest": { "outputs": [output] } });
    let fail = json!({
        "token": 1, "lease": "5c0e", "reason": "r", "message": "m", "final": true,
    });
    vec![
        ("claim", all_told::<ClaimRequest>(&claim)),
        ("heartbeat", all_told::<HeartbeatRequest>(&beat)),
        ("complete", all_told::<CompleteRequest>(&complete)),
        ("fail", all_told::<FailRequest>(&fail)),
        ("release", all_told::<ReleaseRequest>(&pair)),
        ("pin", all_told::<PinRequest>(&json!({ "job": "j1", "pair": pair }))),
        ("finish", all_told::<FinishRequest>(&json!({ "generation": 1, "size_bytes": 1 }))),
        ("progress", all_told::<ProgressRequest>(&json!({ "session": "s", "renders": [] }))),
    ]
}

/// What everybody else sends.
fn told_to_others() -> Vec<(&'static str, Vec<Problem>)> {
    let acquire = json!({ "holder": "a", "ttl_ms": 5, "wait_ms": 5, "request_id": "r" });
    let input = json!({ "digest": "aa", "size_bytes": 1, "name": "clip" });
    let submit = json!({
        "recipe": "copy", "inputs": { "source": input }, "parameters": { "crf": 5 },
        "request_id": "r", "fresh": false, "priority": 5, "run_at_ms": 5, "backup_after_ms": 5,
        "publish": "a/b", "tenant": "t",
    });
    let cancel = json!({ "submission": 1, "all": false, "request_id": "r" });
    let webhook = json!({ "url": "http://x", "events": ["job.failed"], "tenant": "t" });
    vec![
        ("acquire", all_told::<AcquireRequest>(&acquire)),
        ("pair", all_told::<PairWire>(&json!({ "token": 1, "lease": "5c0e" }))),
        ("submit", all_told::<SubmitRequest>(&submit)),
        ("cancel", all_told::<CancelRequest>(&cancel)),
        ("retry", all_told::<RetryRequest>(&json!({ "submission": 1, "request_id": "r" }))),
        ("webhook", all_told::<WebhookRequest>(&webhook)),
        ("rotate", all_told::<RotateRequest>(&json!({ "keep_ms": 5 }))),
    ]
}

#[test]
fn no_body_is_answered_in_this_programs_own_words() {
    let own = [
        "struct",
        "enum",
        "variant",
        "Wire",
        "Request",
        "sequence",
        "u64",
        "u32",
        "i16",
        "f64",
        "usize",
        "expected",
        "invalid type",
        "serde",
        "`",
        "tuple",
    ];
    for (body, problems) in told_to_workers().into_iter().chain(told_to_others()) {
        assert!(problems.len() >= 5, "{body} was hardly spoilt: {problems:?}");
        for problem in problems {
            let said = format!("{} {:?}", problem.detail, problem.facts);
            for word in own {
                assert!(!said.contains(word), "{body}: {word:?} in {said}");
            }
            assert!(problem.detail.contains(": "), "{body}: {said}");
            assert_eq!((problem.status, problem.code.as_str()), (422, "invalid"), "{said}");
            assert!(problem.facts.contains_key("field"), "{said}");
        }
    }
}
