//! `palisade object`, as a script meets it.

use std::process::Output;

use crate::stage::{Stage, text};

/// A lock's pair, held until the stage goes.
async fn pair(stage: &Stage, lock: &str) -> [String; 4] {
    let wish = palisade_api::wire::AcquireRequest {
        holder: "script".to_owned(),
        ttl_ms: Some(600_000),
        wait_ms: 0,
        request_id: None,
    };
    let held = stage.cluster.client().acquire_lock(lock, &wish).await.expect("it is free");
    ["--token".to_owned(), held.token.to_string(), "--lease".to_owned(), held.lease]
}

fn object(stage: &Stage, args: &[&str], pair: &[String], input: &str) -> Output {
    let mut all = vec!["object"];
    all.extend(args);
    all.extend(pair.iter().map(String::as_str));
    stage.palisade(&all, input)
}

fn json(output: &Output) -> serde_json::Value {
    let parsed = serde_json::from_slice(&output.stdout);
    parsed.unwrap_or_else(|_| panic!("{}{}", text(&output.stdout), text(&output.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_put_read_in_parts_listed_deleted_and_its_fence_stays() {
    let stage = Stage::set().await;
    let old = pair(&stage, "older").await;
    let young = pair(&stage, "younger").await;
    let file = stage.path("a file");
    std::fs::write(&file, "0123456789").expect("a file");
    let file = file.display().to_string();
    let put = ["--json", "put", "b+c/d=1", &file, "--media-type", "text/plain"];
    let written = json(&object(&stage, &put, &young, ""));
    assert_eq!(written["token"].to_string(), young[1]);
    let get =
        |range: &str| text(&object(&stage, &["get", "b+c/d=1", "--range", range], &[], "").stdout);
    assert_eq!((get("2-4"), get("7-"), get("-1")), ("234".into(), "789".into(), "9".into()));
    let copy = stage.path("copy").display().to_string();
    assert!(object(&stage, &["get", "b+c/d=1", "-o", &copy], &[], "").status.success());
    assert_eq!(std::fs::read_to_string(&copy).expect("it is there"), "0123456789");
    let head = json(&object(&stage, &["--json", "head", "b+c/d=1"], &[], ""));
    assert_eq!((&head["size_bytes"], &head["media_type"]), (&10.into(), &"text/plain".into()));
    let listed = json(&object(&stage, &["--json", "ls", "b+"], &[], ""));
    assert_eq!(listed["objects"][0]["key"], "b+c/d=1");
    assert!(
        json(&object(&stage, &["--json", "ls", "x"], &[], ""))["objects"]
            .as_array()
            .expect("a list")
            .is_empty()
    );

    let etag = head["etag"].as_str().expect("an ETag").to_owned();
    let again =
        object(&stage, &["put", "b+c/d=1", "-", "--op", "2", "--if-none-match", "*"], &young, "x");
    assert_eq!(again.status.code(), Some(5), "{}", text(&again.stderr));
    let plain = etag.trim_matches('"');
    let again =
        object(&stage, &["put", "b+c/d=1", "-", "--op", "2", "--if-match", plain], &young, "typed");
    assert!(again.status.success(), "{}", text(&again.stderr));
    let unnumbered = object(&stage, &["put", "b+c/d=1", "-"], &young, "other");
    assert_eq!(unnumbered.status.code(), Some(5), "{}", text(&unnumbered.stderr));
    assert!(object(&stage, &["rm", "b+c/d=1", "--op", "3"], &young, "").status.success());
    assert_eq!(object(&stage, &["head", "b+c/d=1"], &[], "").status.code(), Some(4));
    let late = object(&stage, &["--json", "put", "b+c/d=1", "-"], &old, "late");
    assert_eq!((late.status.code(), json(&late)["fence"].to_string()), (Some(5), young[1].clone()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raise_shuts_out_older_holders_and_a_large_body_streams() {
    let stage = Stage::set().await;
    let old = pair(&stage, "older").await;
    let young = pair(&stage, "younger").await;
    let large = "0123456789abcdef".repeat(512 * 1024);
    let put = object(&stage, &["put", "large", "-"], &old, &large);
    assert!(put.status.success(), "{}", text(&put.stderr));
    let raised = object(&stage, &["raise", "large"], &young, "");
    assert!(text(&raised.stdout).contains(&format!("the fence stands at {}", young[1])));
    let refused = object(&stage, &["put", "large", "-", "--op", "2"], &old, "small");
    assert_eq!(refused.status.code(), Some(5), "{}", text(&refused.stderr));
    assert!(stage.read("large").as_deref() == Some(large.as_str()), "it is readable throughout");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_allowed_is_named() {
    let stage = Stage::set().await;
    let held = pair(&stage, "door").await;
    let cases: [(&[&str], &str); 5] = [
        (&["put", "../up", "-"], "key"),
        (&["put", "a", "/no/such/file"], "/no/such/file"),
        (&["put", "a", "/tmp"], "not a file"),
        (&["put", "a", "-", "--op", "0"], "--op"),
        (&["put", "a", "-", "--if-none-match", "7"], "--if-none-match"),
    ];
    for (args, named) in cases {
        let done = object(&stage, args, &held, "");
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", text(&done.stderr));
        assert!(text(&done.stderr).contains(named), "{args:?}: {}", text(&done.stderr));
    }
}
