//! What a client is told when the server itself is in trouble, or does not want to hear.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use palisade_api::Client;
use palisade_artefacts::{
    BlobError, BlobReader, Blobs, ByteRange, Place, Staged, Upload, blobs::Listed,
};
use palisade_core::Digest;
use palisade_server::{ServerConfig, Tokens};
use palisade_store::Failure;

use crate::support::{House, config, gate::Gate, raw, raw::Request};

#[tokio::test]
async fn a_store_that_is_down_and_one_of_unknown_outcome_are_told_apart() {
    let (house, gate) = Gate::house(Gate::over).await;
    let wish = house.wish(b"film").await;
    let body = serde_json::to_string(&wish).unwrap();
    let secret = "/var/lib/palisade/db: SQLITE_IOERR";
    for (failure, code) in [
        (Failure::Unavailable(secret.to_owned()), "unavailable"),
        (Failure::Unknown(secret.to_owned()), "unknown"),
    ] {
        gate.fail(Some(failure));
        let answer = raw::ask(&house.server, Request::json("/v1/jobs", &body)).await;
        let problem = answer.problem();
        assert_eq!((problem.status, problem.code.as_str()), (503, code));
        assert!(!answer.text().contains("SQLITE"), "its own words are for the log alone");
        assert_eq!(answer.headers["retry-after"], "1");
        let many = format!("{{ \"jobs\": [{body}] }}");
        let answer = raw::ask(&house.server, Request::json("/v1/jobs", &many)).await;
        assert_eq!(answer.json()["results"][0]["error"]["code"], code);
        let ready = raw::ask(&house.server, Request::new("GET", "/readyz")).await;
        assert_eq!(ready.status, 503);
        assert_eq!(raw::ask(&house.server, Request::new("GET", "/healthz")).await.status, 200);
    }
    gate.fail(None);
    assert_eq!(raw::ask(&house.server, Request::new("GET", "/readyz")).await.status, 200);
    house.client.submit(&wish).await.unwrap();
}

/// Blobs on a disk without room.
#[derive(Debug)]
struct Full;

#[derive(Debug)]
struct FullUpload;

fn no_room() -> BlobError {
    let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
    BlobError::DiskFull { path: "/var/lib/palisade/blobs".into(), source }
}

#[async_trait]
impl Blobs for Full {
    async fn begin(&self, _: Option<Place>, _: u64) -> Result<Box<dyn Upload>, BlobError> {
        Ok(Box::new(FullUpload))
    }

    async fn open(&self, place: Place, _: ByteRange) -> Result<BlobReader, BlobError> {
        Err(BlobError::NotFound(place))
    }

    async fn size(&self, _: Place) -> Result<Option<u64>, BlobError> {
        panic!("the disk of the test is made to panic")
    }

    async fn delete(&self, _: Place) -> Result<(), BlobError> {
        Err(no_room())
    }

    async fn list(&self) -> Result<BoxStream<'static, Result<Listed, BlobError>>, BlobError> {
        Err(no_room())
    }

    fn local_path(&self, _: Place) -> Option<std::path::PathBuf> {
        None
    }
}

#[async_trait]
impl Upload for FullUpload {
    async fn write(&mut self, _: Bytes) -> Result<(), BlobError> {
        Err(no_room())
    }

    async fn finish(self: Box<Self>) -> Result<Box<dyn Staged>, BlobError> {
        Err(no_room())
    }
}

#[tokio::test]
async fn a_full_disk_is_a_clear_error_and_the_blob_is_not_there() {
    let house = House::over(config(), Arc::new(Full)).await;
    let path = format!("/v1/blobs/{}", Digest::of(b"film"));
    let answer = raw::ask(&house.server, Request::new("PUT", &path).body(b"film")).await;
    let problem = answer.problem();
    assert_eq!((problem.status, problem.code.as_str()), (507, "disk_full"));
    assert!(!answer.text().contains("/var/lib"), "{answer:?}");
    let head = raw::ask(&house.server, Request::new("HEAD", &path)).await;
    assert_eq!(head.status, 404);
}

#[tokio::test]
async fn a_handler_that_panics_answers_and_the_server_goes_on() {
    let house = House::over(config(), Arc::new(Full)).await;
    let answer = raw::ask(&house.server, Request::new("GET", "/readyz")).await;
    let problem = answer.problem();
    assert_eq!((problem.status, problem.code.as_str()), (500, "internal"));
    assert!(!problem.detail.contains("made to panic"), "{problem:?}");
    assert_eq!(raw::ask(&house.server, Request::new("GET", "/healthz")).await.status, 200);
}

#[tokio::test]
async fn pages_of_other_sites_are_kept_out() {
    let house = House::start().await;
    let get = || Request::new("GET", "/v1/jobs");
    for (request, field) in [
        (get().header("host", "evil.example"), "host"),
        (get().header("host", "127.0.0.1.evil.example:7070"), "host"),
        (get().header("host", ""), "host"),
        (get().header("origin", "http://evil.example"), "origin"),
        (get().header("origin", "null"), "origin"),
    ] {
        let problem = raw::ask(&house.server, request).await.problem();
        assert_eq!((problem.status, problem.code.as_str()), (403, "forbidden"));
        assert_eq!(problem.facts["field"], field);
    }
    let own = house.server.address().to_string();
    for host in ["localhost", "LOCALHOST:1", "[::1]:7070", &own] {
        let answer = raw::ask(&house.server, get().header("host", host)).await;
        assert_eq!(answer.status, 200, "{host}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
    let same = get().header("origin", &format!("http://{own}"));
    assert_eq!(raw::ask(&house.server, same).await.status, 200);
    let told = ServerConfig { hosts: vec!["farm.example".to_owned()], ..config() };
    let house = House::with(told).await;
    let answer = raw::ask(&house.server, get().header("host", "farm.example:80")).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn without_a_token_nothing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, "# ours\n\nfirst-token-0123456789\nsecond-token-0123456789\n").unwrap();
    let tokens = Some(Tokens::read(&file).unwrap());
    let house = House::with(ServerConfig { tokens, ..config() }).await;
    for path in ["/v1/jobs", "/v1/recipes", "/metrics", "/v1/events", "/nowhere"] {
        for shown in ["", "Bearer", "Bearer x", "Basic first-token-0123456789", "bearer # ours"] {
            let mut request = Request::new("GET", path);
            if !shown.is_empty() {
                request = request.header("authorization", shown);
            }
            let answer = raw::ask(&house.server, request).await;
            assert_eq!(answer.problem().code, "unauthorized", "{path} {shown}");
            assert_eq!(
                (answer.status, answer.headers["www-authenticate"].as_str()),
                (401, "Bearer")
            );
        }
    }
    for token in ["first-token-0123456789", "second-token-0123456789"] {
        let request = Request::new("GET", "/v1/jobs");
        let request = request.header("authorization", &format!("Bearer {token}"));
        assert_eq!(raw::ask(&house.server, request).await.status, 200);
    }
    let url = house.server.url();
    let knowing = Client::with_token(&url, "first-token-0123456789").unwrap();
    assert!(knowing.jobs("").await.unwrap().jobs.is_empty());
    let guessing = Client::with_token(&url, "first-token-0123456788").unwrap();
    assert_eq!(guessing.jobs("").await.unwrap_err().code(), Some("unauthorized"));
    for path in ["/", "/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(raw::ask(&house.server, Request::new("GET", path)).await.status, 200, "{path}");
    }
}

#[test]
fn a_weak_or_missing_token_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    assert!(Tokens::read(&file).unwrap_err().to_string().contains("tokens"));
    for text in ["", "# none\n", "\n\n"] {
        std::fs::write(&file, text).unwrap();
        let error = Tokens::read(&file).unwrap_err().to_string();
        assert!(error.contains("has no tokens") && !error.contains("line 0"), "{error}");
    }
    for (text, line) in [("\nshort\n", 2), ("with blanks in the middle", 1)] {
        std::fs::write(&file, text).unwrap();
        let error = Tokens::read(&file).unwrap_err().to_string();
        assert!(error.contains(&format!("line {line} ")), "{error}");
    }
    std::fs::write(&file, "a-token-of-enough-length").unwrap();
    let shown = format!("{:?}", Tokens::read(&file).unwrap());
    assert_eq!(shown, "Tokens(1)", "a token is never shown");
}
