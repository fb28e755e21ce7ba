//! Paths, queries, headers, and bodies that are not what they should be.

use std::time::Duration;

use palisade_core::Digest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{INVALID, refused};
use crate::support::{House, raw, raw::Request};

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
        head = if announced {
            head.header("content-length", "100000000")
        } else {
            head.header("transfer-encoding", "chunked")
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
