//! What workers say.

use palisade_core::Digest;
use serde_json::{Value, json};

use super::{INVALID, refused};
use crate::support::{House, raw, raw::Request};

#[tokio::test]
async fn claims_and_heartbeats() {
    let house = House::start().await;
    let claim = |name: &str, value: Value| {
        let mut claim = serde_json::to_value(house.claim("s1", "c1", 0)).unwrap();
        claim[name] = value;
        claim.to_string()
    };
    let capability =
        |recipe: &str, definition: &str| json!([{ "recipe": recipe, "definition": definition }]);
    let cases = [
        (claim("worker", json!("a b")), "worker"),
        (claim("session", json!("")), "session"),
        (claim("session", json!(null)), "session"),
        (claim("request_id", json!("../x")), "request_id"),
        (claim("seq", json!(-1)), "seq"),
        (claim("ttl_ms", json!(499)), "ttl_ms"),
        (claim("ttl_ms", json!(86_400_001)), "ttl_ms"),
        (claim("wait_ms", json!(60_001)), "wait_ms"),
        (claim("max_jobs", json!(0)), "max_jobs"),
        (claim("max_jobs", json!(1_001)), "max_jobs"),
        (claim("recipes", json!([])), "recipes"),
        (claim("recipes", capability("..", &house.definition)), "recipes[0].recipe"),
        (claim("recipes", capability("copy", "12")), "recipes[0].definition"),
        (claim("recipes", json!([{ "recipe": "copy" }])), "recipes[0].definition"),
        (claim("slots", json!(3)), "slots"),
    ];
    for (body, field) in cases {
        refused(&house, Request::json("/v1/claims", &body), (INVALID, "invalid", field)).await;
    }
    let lease = |name: &str, value: Value| {
        let mut lease = json!({ "job": "j1", "token": 1, "lease": "0".repeat(32) });
        lease[name] = value;
        json!({ "session": "s1", "seq": 1, "leases": [lease] }).to_string()
    };
    let cases = [
        (lease("job", json!("1")), "leases[0].job"),
        (lease("job", json!("j01")), "leases[0].job"),
        (lease("token", json!(1_u64 << 53)), "leases[0].token"),
        (lease("token", json!(1_u64 << 63)), "leases[0].token"),
        (lease("token", json!("1")), "leases[0].token"),
        (lease("lease", json!("zz")), "leases[0].lease"),
        (lease("lease", json!("A".repeat(32))), "leases[0].lease"),
        (json!({ "session": "s1", "seq": 0, "leases": [] }).to_string(), "seq"),
        (json!({ "session": "s1", "leases": [] }).to_string(), "seq"),
        (json!({ "session": "s 1", "seq": 1, "leases": [] }).to_string(), "session"),
        (
            json!({ "session": "s", "seq": 1, "leases": [], "pending": ["?"] }).to_string(),
            "pending[0]",
        ),
    ];
    for (body, field) in cases {
        refused(&house, Request::json("/v1/heartbeats", &body), (INVALID, "invalid", field)).await;
    }
}

#[tokio::test]
async fn progress() {
    let house = House::start().await;
    let render = |name: &str, value: Value| {
        let mut render = json!({ "job": "j1", "token": 1, "lease": "0".repeat(32) });
        render[name] = value;
        json!({ "session": "s1", "renders": [render] }).to_string()
    };
    let cases = [
        (render("job", json!("1")), "renders[0].job"),
        (render("token", json!(1_u64 << 53)), "renders[0].token"),
        (render("lease", json!("zz")), "renders[0].lease"),
        (render("share", json!(1.5)), "renders[0].share"),
        (render("speed", json!(-1.0)), "renders[0].speed"),
        (json!({ "session": "s 1", "renders": [] }).to_string(), "session"),
    ];
    for (body, field) in cases {
        refused(&house, Request::json("/v1/progress", &body), (INVALID, "invalid", field)).await;
    }
}

#[tokio::test]
async fn verbs_of_an_attempt() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let grant = house.grant("s1", "c1").await;
    let output = json!({ "name": "copy.mp4", "digest": Digest::of(b"x").to_string(),
                         "size_bytes": 1, "media_type": "video/mp4" });
    let good = json!({ "token": grant.token, "lease": grant.lease,
                       "manifest": { "outputs": [output] } });
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body.to_string()
    };
    let of_output = |name: &str, value: Value| {
        let mut body = good.clone();
        body["manifest"]["outputs"][0][name] = value;
        body.to_string()
    };
    let twice = json!({ "outputs": [output, output] });
    let cases = [
        (with("token", json!(1_u64 << 53)), "token"),
        (with("token", json!(1_u64 << 63)), "token"),
        (with("token", json!(-1)), "token"),
        (with("token", json!(1.5)), "token"),
        (with("token", serde_json::from_str("18446744073709551616").unwrap()), "token"),
        (with("lease", json!("not one")), "lease"),
        (with("lease", json!(null)), "lease"),
        (with("manifest", json!({ "outputs": [] })), "manifest.outputs"),
        (with("manifest", twice), "manifest.outputs"),
        (of_output("name", json!("../escape.mp4")), "manifest.outputs[0].name"),
        (of_output("name", json!("/etc/passwd")), "manifest.outputs[0].name"),
        (of_output("name", json!("a\\b")), "manifest.outputs[0].name"),
        (of_output("digest", json!("ff")), "manifest.outputs[0].digest"),
        (of_output("media_type", json!("video")), "manifest.outputs[0].media_type"),
        (of_output("media_type", json!("a/b\r\nx: y")), "manifest.outputs[0].media_type"),
    ];
    let complete = format!("/v1/jobs/{job}/complete");
    for (body, field) in cases {
        refused(&house, Request::json(&complete, &body), (INVALID, "invalid", field)).await;
    }
    let missing = (INVALID, "missing_blob", "manifest.outputs[0].digest");
    refused(&house, Request::json(&complete, &good.to_string()), missing).await;

    let fail = |name: &str, value: Value| {
        let mut body = json!({ "token": grant.token, "lease": grant.lease,
                               "reason": "bad_input", "message": "no" });
        body[name] = value;
        body.to_string()
    };
    let path = format!("/v1/jobs/{job}/fail");
    for (body, field) in [
        (fail("reason", json!("Bad Input")), "reason"),
        (fail("reason", json!("")), "reason"),
        (fail("message", json!(7)), "message"),
        (fail("final", json!(1)), "final"),
        (fail("token", json!(1_u64 << 63)), "token"),
    ] {
        refused(&house, Request::json(&path, &body), (INVALID, "invalid", field)).await;
    }
    assert_eq!(house.state(&job).await, "running", "the attempt is as it was");
}

#[tokio::test]
async fn a_pair_that_was_never_granted_is_refused_by_every_verb() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let grant = house.grant("s1", "c1").await;
    let stranger = "0".repeat(32);
    let pair = format!(r#""token": {}, "lease": "{stranger}""#, grant.token);
    let manifest = format!(
        r#""manifest": {{ "outputs": [{{ "name": "a", "digest": "{}", "size_bytes": 1,
            "media_type": "a/b" }}] }}"#,
        Digest::of(b"x")
    );
    for (verb, rest) in [
        ("complete", format!(", {manifest}")),
        ("fail", r#", "reason": "x", "message": "x""#.to_owned()),
        ("release", String::new()),
    ] {
        let body = format!("{{ {pair} {rest} }}");
        let path = format!("/v1/jobs/{job}/{verb}");
        let answer = raw::ask(&house.server, Request::json(&path, &body)).await;
        assert_eq!(answer.problem().code, "unknown_token", "{verb}");
        // The right pair under another job is as good as none.
        let body = body.replace(&stranger, &grant.lease);
        let path = format!("/v1/jobs/j999/{verb}");
        let answer = raw::ask(&house.server, Request::json(&path, &body)).await;
        assert_eq!(answer.problem().code, "not_found", "{verb}");
    }
}

#[tokio::test]
async fn pins_of_uploads() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let grant = house.grant("s1", "c1").await;
    let blob = format!("/v1/blobs/{}", Digest::of(b"out"));
    let put = |headers: [(&str, &str); 3]| {
        headers
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .fold(Request::new("PUT", &blob).body(b"out"), |request, (name, value)| {
                request.header(name, value)
            })
    };
    let token = grant.token.to_string();
    let pair = |job: &'static str, token: &'static str, lease: &'static str| {
        [("palisade-job", job), ("fencing-token", token), ("fencing-lease", lease)]
    };
    let zeros = "00000000000000000000000000000000";
    refused(&house, put(pair("j1", "", "")), (INVALID, "invalid", "fencing-token")).await;
    refused(&house, put(pair("", "5", zeros)), (INVALID, "invalid", "palisade-job")).await;
    refused(&house, put(pair("x", "5", zeros)), (INVALID, "invalid", "palisade-job")).await;
    let too_big = pair("j1", "9223372036854775808", zeros);
    refused(&house, put(too_big), (INVALID, "invalid", "fencing-token")).await;
    refused(&house, put(pair("j1", "5", "zz")), (INVALID, "invalid", "fencing-lease")).await;
    let stranger = [("palisade-job", &*job), ("fencing-token", &*token), ("fencing-lease", zeros)];
    refused(&house, put(stranger), (INVALID, "unknown_token", "")).await;

    let pin = format!("{blob}/pin");
    for (body, field) in [
        (json!({ "job": job }), "pair"),
        (json!({ "pair": { "token": 1, "lease": zeros } }), "job"),
        (json!({ "job": job, "pair": { "token": 1_u64 << 60, "lease": zeros } }), "pair.token"),
        (json!({ "job": job, "pair": { "token": 1, "lease": "z" } }), "pair.lease"),
        (json!({ "until": 5 }), "until"),
    ] {
        let request = Request::json(&pin, &body.to_string());
        refused(&house, request, (INVALID, "invalid", field)).await;
    }
}
