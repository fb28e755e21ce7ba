//! Wishes.

use palisade_core::Digest;
use serde_json::{Value, json};

use super::{INVALID, refused};
use crate::support::{House, raw, raw::Request};

#[tokio::test]
async fn submissions() {
    let house = House::start().await;
    let input = json!({ "digest": Digest::of(b"film").to_string(), "size_bytes": 4 });
    house.input(b"film").await;
    let good = json!({ "recipe": "copy", "inputs": { "source": input } });
    let with = |pointer: &str, value: Value| {
        let mut wish = good.clone();
        wish[pointer] = value;
        wish.to_string()
    };
    let source = |name: &str, value: Value| {
        let mut wish = good.clone();
        wish["inputs"]["source"][name] = value;
        wish.to_string()
    };
    let cases = [
        (with("recipe", json!("no-such")), "recipe"),
        (with("recipe", json!("../../etc/passwd")), "recipe"),
        (with("recipe", json!("")), "recipe"),
        (with("recipe", json!(7)), "recipe"),
        (with("recipe", json!(null)), "recipe"),
        (json!({ "inputs": {} }).to_string(), "recipe"),
        (with("inputs", json!({})), "inputs.source"),
        (with("inputs", json!({ "source": input, "logo": input })), "inputs.logo"),
        (with("inputs", json!([])), "inputs"),
        (source("digest", json!("abc")), "inputs.source.digest"),
        (source("digest", json!("A".repeat(64))), "inputs.source.digest"),
        (source("size_bytes", json!(-1)), "inputs.source.size_bytes"),
        (source("size_bytes", json!(5)), "inputs.source.size_bytes"),
        (source("size_bytes", json!(1_u64 << 60)), "inputs.source.size_bytes"),
        (source("name", json!("a\u{0}b")), "inputs.source.name"),
        (source("name", json!("x".repeat(2_000))), "inputs.source.name"),
        (source("path", json!("/etc/passwd")), "inputs.source.path"),
        (with("parameters", json!({ "crf": 52 })), "parameters.crf"),
        (with("parameters", json!({ "crf": "-vf" })), "parameters.crf"),
        (with("parameters", json!({ "crf": [1] })), "parameters.crf"),
        (with("parameters", json!({ "argv": "rm" })), "parameters"),
        (with("priority", json!(101)), "priority"),
        (with("priority", json!(100_000)), "priority"),
        (with("run_at_ms", json!(1_u64 << 60)), "run_at_ms"),
        (with("run_at_ms", json!(-5)), "run_at_ms"),
        (with("backup_after_ms", json!(0)), "backup_after_ms"),
        (with("request_id", json!("a b")), "request_id"),
        (with("request_id", json!("x".repeat(129))), "request_id"),
        (with("tenant", json!("a/b")), "tenant"),
        (with("fresh", json!("yes")), "fresh"),
        (with("command", json!("rm -rf /")), "command"),
        (json!([]).to_string(), "body"),
        (json!("copy").to_string(), "body"),
        (json!({ "jobs": 7 }).to_string(), "jobs"),
        (json!({ "jobs": [], "recipe": "copy" }).to_string(), "recipe"),
    ];
    for (body, field) in cases {
        refused(&house, Request::json("/v1/jobs", &body), (INVALID, "invalid", field)).await;
    }
    let absent = source("digest", json!(Digest::of(b"absent").to_string()));
    let expected = (INVALID, "missing_blob", "inputs.source.digest");
    refused(&house, Request::json("/v1/jobs", &absent), expected).await;
    assert!(house.client.jobs("").await.unwrap().jobs.is_empty(), "nothing was recorded");
}

#[tokio::test]
async fn one_bad_wish_among_many_is_refused_alone() {
    let house = House::start().await;
    let good = house.wish(b"film").await;
    let bad = json!({ "recipe": "copy", "inputs": {}, "colour": "red" });
    let body = json!({ "jobs": [good, bad, { "recipe": "no-such" }, good, 7] }).to_string();
    let answer = raw::ask(&house.server, Request::json("/v1/jobs", &body)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = answer.json()["results"].as_array().unwrap().clone();
    let code = |index: usize| results[index]["error"]["code"].as_str().map(str::to_owned);
    let field = |index: usize| results[index]["error"]["field"].as_str().map(str::to_owned);
    assert_eq!(results[0]["deduplicated"], false);
    assert_eq!((code(1).as_deref(), field(1).as_deref()), (Some("invalid"), Some("colour")));
    assert_eq!((code(2).as_deref(), field(2).as_deref()), (Some("invalid"), Some("recipe")));
    assert_eq!(results[3]["deduplicated"], true);
    assert_eq!(results[3]["job"], results[0]["job"]);
    assert_eq!(code(4).as_deref(), Some("invalid"));
}

#[tokio::test]
async fn cancels_and_retries() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    house.submit(b"film").await;
    let cancel = format!("/v1/jobs/{job}/cancel");
    let retry = format!("/v1/jobs/{job}/retry");
    let cases = [
        (&cancel, json!({}), "submission"),
        (&cancel, json!({ "submission": 1_u64 << 53 }), "submission"),
        (&cancel, json!({ "submission": 1, "all": true }), "submission"),
        (&cancel, json!({ "submission": "1" }), "submission"),
        (&cancel, json!({ "all": "yes" }), "all"),
        (&cancel, json!({ "all": true, "request_id": "" }), "request_id"),
        (&cancel, json!({ "force": true }), "force"),
        (&retry, json!({ "submission": 1_u64 << 63 }), "submission"),
        (&retry, json!({ "request_id": "a b" }), "request_id"),
        (&retry, json!({ "all": true }), "all"),
    ];
    for (path, body, field) in cases {
        let request = Request::json(path, &body.to_string());
        refused(&house, request, (INVALID, "invalid", field)).await;
    }
    let nobody = Request::json(&cancel, r#"{ "submission": 900 }"#);
    refused(&house, nobody, (404, "not_found", "submission")).await;
    refused(&house, Request::json(&retry, "{}"), (409, "wrong_state", "")).await;
}
