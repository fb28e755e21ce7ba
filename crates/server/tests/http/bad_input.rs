//! Bad input to every route: each a refusal with a status, a stable code, and the field.

use std::time::Duration;

use palisade_core::Digest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{House, raw, raw::Request};

/// What a refusal must be: its status, its code, and the field that it names.
type Expected = (u16, &'static str, &'static str);

async fn refused(house: &House, request: Request, expected: Expected) {
    let shown = format!("{request:?}");
    let answer = raw::ask(&house.server, request).await;
    let problem = answer.problem();
    let field = problem.facts.get("field").or(problem.facts.get("what"));
    let got = (problem.status, problem.code.as_str(), field.and_then(Value::as_str).unwrap_or(""));
    assert_eq!(got, expected, "{shown}\n{problem:?}");
}

const INVALID: u16 = 422;

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

#[tokio::test]
async fn paths_queries_and_headers() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let outputs = format!("/v1/jobs/{job}/outputs");
    let blob = format!("/v1/blobs/{}", Digest::of(b"film"));
    let cases = [
        ("GET", "/v1/jobs/42".to_owned(), (INVALID, "invalid", "job")),
        ("GET", "/v1/jobs/j9007199254740992".to_owned(), (INVALID, "invalid", "job")),
        ("GET", "/v1/jobs/..%2f..%2fetc".to_owned(), (INVALID, "invalid", "job")),
        ("GET", "/v1/jobs/%zz".to_owned(), (INVALID, "invalid", "job")),
        ("GET", "/v1/jobs/%ff".to_owned(), (INVALID, "invalid", "path")),
        ("GET", "/v1/jobs/j9".to_owned(), (404, "not_found", "job")),
        ("GET", "/v1/jobs/j9/wait".to_owned(), (404, "not_found", "job")),
        ("GET", "/v1/jobs/j9/history".to_owned(), (404, "not_found", "job")),
        (
            "GET",
            format!("/v1/jobs/{job}/wait?timeout_ms=60001"),
            (INVALID, "invalid", "timeout_ms"),
        ),
        ("GET", format!("/v1/jobs/{job}/wait?timeout_ms=-1"), (INVALID, "invalid", "timeout_ms")),
        ("GET", format!("/v1/jobs/{job}/wait?timeout_ms=+1"), (INVALID, "invalid", "timeout_ms")),
        ("GET", format!("/v1/jobs/{job}?x=1"), (INVALID, "invalid", "x")),
        ("GET", "/v1/jobs?state=done".to_owned(), (INVALID, "invalid", "state")),
        ("GET", "/v1/jobs?recipe=a%20b".to_owned(), (INVALID, "invalid", "recipe")),
        ("GET", "/v1/jobs?cursor=7".to_owned(), (INVALID, "invalid", "cursor")),
        ("GET", "/v1/jobs?limit=0".to_owned(), (INVALID, "invalid", "limit")),
        ("GET", "/v1/jobs?limit=1001".to_owned(), (INVALID, "invalid", "limit")),
        ("GET", "/v1/jobs?limit=1&limit=2".to_owned(), (INVALID, "invalid", "limit")),
        ("GET", "/v1/jobs?limt=1".to_owned(), (INVALID, "invalid", "limt")),
        ("GET", format!("{outputs}/../../x"), (INVALID, "invalid", "output")),
        ("GET", format!("{outputs}/%2e%2e/x"), (INVALID, "invalid", "output")),
        ("GET", format!("{outputs}/a//b"), (INVALID, "invalid", "output")),
        ("GET", format!("{outputs}/copy.mp4"), (409, "wrong_state", "")),
        ("GET", "/v1/blobs/short".to_owned(), (INVALID, "invalid", "digest")),
        ("GET", format!("/v1/blobs/{}", Digest::of(b"none")), (404, "not_found", "blob")),
        ("GET", "/v1/workers/a%20b/session?session=s".to_owned(), (INVALID, "invalid", "worker")),
        ("GET", "/v1/workers/w/session".to_owned(), (INVALID, "invalid", "session")),
        ("GET", "/v1/workers/w/session?session=a%2fb".to_owned(), (INVALID, "invalid", "session")),
        ("GET", "/v1/workers?all=1".to_owned(), (INVALID, "invalid", "all")),
        ("GET", "/v1/recipes?all=1".to_owned(), (INVALID, "invalid", "all")),
        ("GET", "/v1/events?after=x".to_owned(), (INVALID, "invalid", "after")),
        ("PUT", "/v1/blobs/short".to_owned(), (INVALID, "invalid", "digest")),
        ("GET", "/v1".to_owned(), (404, "not_found", "route")),
        ("GET", "/v2/jobs".to_owned(), (404, "not_found", "route")),
        ("GET", "/v1/jobs/".to_owned(), (404, "not_found", "route")),
        ("GET", "/etc/../passwd".to_owned(), (404, "not_found", "route")),
        ("DELETE", "/v1/jobs".to_owned(), (405, "method_not_allowed", "method")),
        ("GET", "/v1/claims".to_owned(), (405, "method_not_allowed", "method")),
        ("POST", blob.clone(), (405, "method_not_allowed", "method")),
        ("BREW", "/v1/jobs".to_owned(), (405, "method_not_allowed", "method")),
    ];
    for (method, path, expected) in cases {
        refused(&house, Request::new(method, &path), expected).await;
    }
    let seen = Request::new("GET", "/v1/events").header("last-event-id", "x");
    refused(&house, seen, (INVALID, "invalid", "last-event-id")).await;
    let range = Request::new("GET", &blob).header("range", "bytes=4-");
    refused(&house, range, (416, "range_not_satisfiable", "range")).await;
    let answer = raw::ask(&house.server, Request::new("DELETE", "/v1/jobs")).await;
    let allow: Vec<_> = answer.headers["allow"].split(',').map(str::trim).collect();
    assert!(allow.contains(&"GET") && allow.contains(&"POST"), "{allow:?}");
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

#[tokio::test]
async fn what_is_not_json_at_all() {
    let house = House::start().await;
    for path in ["/v1/jobs", "/v1/claims", "/v1/heartbeats", "/v1/jobs/j1/complete"] {
        for body in ["", "{", "{\"a\":}", "\u{feff}{}", "{} {}", "nul", "[1,"] {
            refused(&house, Request::json(path, body), (400, "malformed", "body")).await;
        }
        refused(&house, Request::json(path, &"[".repeat(5_000)), (400, "malformed", "body")).await;
        let bytes = Request::json(path, "").body(b"{\"a\": \"\xff\"}");
        refused(&house, bytes, (400, "malformed", "body")).await;
        let plain = Request::new("POST", path).body(b"{}");
        refused(&house, plain, (415, "unsupported_media_type", "content-type")).await;
        let form = Request::new("POST", path).header("content-type", "text/plain").body(b"{}");
        refused(&house, form, (415, "unsupported_media_type", "content-type")).await;
    }
    let answer =
        raw::ask(&house.server, Request::json("/v1/jobs", "{\n\"recipe\": \"x\",\n}")).await;
    assert_eq!(answer.problem().facts["line"], 3, "{answer:?}");
}

#[tokio::test]
async fn a_hundred_megabytes_of_json_are_refused_without_being_kept() {
    let house = House::start().await;
    let before = resident_bytes();
    for announced in [true, false] {
        let mut stream = raw::connect(&house.server).await;
        let mut head = Request::new("POST", "/v1/jobs").header("content-type", "application/json");
        head = match announced {
            true => head.header("content-length", "100000000"),
            false => head.header("transfer-encoding", "chunked"),
        };
        stream.write_all(&head.bytes("localhost")).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        // All of it is sent, as a client does that does not listen before it has spoken.
        let sending = tokio::spawn(async move {
            let piece = vec![b'['; 1_000_000];
            for _ in 0..100 {
                if !announced {
                    writer.write_all(b"F4240\r\n").await.unwrap();
                }
                writer.write_all(&piece).await.unwrap();
                if !announced {
                    writer.write_all(b"\r\n").await.unwrap();
                }
            }
            if !announced {
                writer.write_all(b"0\r\n\r\n").await.unwrap();
            }
            writer
        });
        let mut answer = vec![0; 1024];
        let read = reader.read(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert!(text.starts_with("HTTP/1.1 413"), "{text}");
        assert!(text.contains("\"code\":\"too_large\""), "{text}");
        sending.await.unwrap();
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 60_000_000, "the process grew by {grown} bytes");
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_body_that_stalls_or_ends_early_is_given_up() {
    let config = palisade_server::ServerConfig {
        body_stall: Duration::from_millis(50),
        ..crate::support::config()
    };
    let house = House::with(config).await;
    let mut stream = raw::connect(&house.server).await;
    let head = Request::new("POST", "/v1/jobs")
        .header("content-type", "application/json")
        .header("content-length", "100");
    stream.write_all(&head.bytes("localhost")).await.unwrap();
    let answer = raw::read_answer(&mut stream, false).await;
    assert_eq!((answer.status, answer.problem().code.as_str()), (408, "interrupted"));
}
