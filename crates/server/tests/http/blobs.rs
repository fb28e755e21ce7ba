//! Blobs: hashed as they arrive, kept whole or not at all.

use std::sync::Arc;

use palisade_api::{Client, client::Upload};
use palisade_artefacts::{LocalBlobs, MemoryBlobs, Place};
use palisade_core::{Digest, LeaseId, Number, blob::BlobState, lease::Pair};
use palisade_server::ServerConfig;
use palisade_store::query::{Query, View};
use tokio::io::AsyncWriteExt;

use crate::support::{House, config, eventually, pin_headers, raw, raw::Request};

async fn is_present(house: &House, bytes: &[u8]) -> bool {
    match house.store.query(Query::Blob(Digest::of(bytes))).await.unwrap() {
        View::Blob(blob) => blob.is_some_and(|blob| blob.state == BlobState::Present),
        _ => unreachable!(),
    }
}

/// The files below a folder, uploads under way included.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let is_folder = entry.file_type().unwrap().is_dir();
            if is_folder { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found
}

#[tokio::test]
async fn what_was_put_is_got_by_its_digest() {
    let house = House::start().await;
    let bytes = vec![7; 3_000_000];
    assert_eq!(house.put(&bytes, &[]).await.json()["size_bytes"], 3_000_000);
    let path = format!("/v1/blobs/{}", Digest::of(&bytes));
    let head = raw::ask(&house.server, Request::new("HEAD", &path)).await;
    assert_eq!((head.status, head.headers["content-length"].as_str()), (200, "3000000"));
    assert!(head.body.is_empty());
    let got = raw::ask(&house.server, Request::new("GET", &path)).await;
    assert!(got.status == 200 && got.body == bytes);
    assert_eq!(got.headers["etag"], format!("\"{}\"", Digest::of(&bytes)));
    let again = house.put(&bytes, &[]).await;
    assert_eq!(again.json()["size_bytes"], 3_000_000);
    let absent = format!("/v1/blobs/{}", Digest::of(b"absent"));
    assert_eq!(raw::ask(&house.server, Request::new("HEAD", &absent)).await.status, 404);
}

#[tokio::test]
async fn bytes_of_another_digest_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = LocalBlobs::open(folder.path()).await.unwrap();
    let house = House::over(config(), Arc::new(blobs)).await;
    let before = files(folder.path());
    let path = format!("/v1/blobs/{}", Digest::of(b"what was announced"));
    let answer = raw::ask(&house.server, Request::new("PUT", &path).body(b"what came")).await;
    let problem = answer.problem();
    assert_eq!((problem.status, problem.code.as_str()), (422, "invalid"));
    assert_eq!(problem.facts["field"], "digest");
    assert!(problem.detail.contains(&Digest::of(b"what came").to_string()), "{problem:?}");
    assert_eq!(files(folder.path()), before);
    assert!(!is_present(&house, b"what was announced").await);
    // The right bytes are welcome afterwards.
    house.put(b"what was announced", &[]).await;
    assert!(is_present(&house, b"what was announced").await);
}

#[tokio::test]
async fn an_upload_that_is_cut_off_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = LocalBlobs::open(folder.path()).await.unwrap();
    let house = House::over(config(), Arc::new(blobs)).await;
    let before = files(folder.path());
    let bytes = vec![1; 1_000_000];
    let path = format!("/v1/blobs/{}", Digest::of(&bytes));
    let mut stream = raw::connect(&house.server).await;
    let request = Request::new("PUT", &path).body(&bytes).bytes("localhost");
    stream.write_all(&request[..500_000]).await.unwrap();
    eventually(|| async { (files(folder.path()).len() > before.len()).then_some(()) }).await;
    drop(stream);
    eventually(|| async { (files(folder.path()) == before).then_some(()) }).await;
    assert!(!is_present(&house, &bytes).await);
}

#[tokio::test]
async fn many_bring_the_same_blob_at_once_and_all_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = LocalBlobs::open(folder.path()).await.unwrap();
    let house = Arc::new(House::over(config(), Arc::new(blobs)).await);
    let bytes = Arc::new(vec![3; 2_000_000]);
    let puts: Vec<_> = (0..10)
        .map(|_| {
            let (house, bytes) = (Arc::clone(&house), Arc::clone(&bytes));
            tokio::spawn(async move { house.put(&bytes, &[]).await })
        })
        .collect();
    for put in puts {
        assert_eq!(put.await.unwrap().json()["size_bytes"], 2_000_000);
    }
    let path = format!("/v1/blobs/{}", Digest::of(&bytes));
    let got = raw::ask(&house.server, Request::new("GET", &path)).await;
    assert_eq!(got.body, *bytes);
}

#[tokio::test]
async fn a_blob_over_the_limit_is_refused_announced_or_not() {
    let small = ServerConfig { blob_bytes_max: 1_000, ..config() };
    let house = House::over(small, Arc::new(MemoryBlobs::new())).await;
    let bytes = vec![5; 1_001];
    let path = format!("/v1/blobs/{}", Digest::of(&bytes));
    let announced = raw::ask(&house.server, Request::new("PUT", &path).body(&bytes)).await;
    assert_eq!((announced.status, announced.problem().code.as_str()), (413, "too_large"));
    let mut chunked = b"3e9\r\n".to_vec();
    chunked.extend_from_slice(&bytes);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let request = Request::new("PUT", &path).header("transfer-encoding", "chunked").body(&chunked);
    let answer = raw::ask(&house.server, request).await;
    assert_eq!((answer.status, answer.problem().code.as_str()), (413, "too_large"));
    assert_eq!(answer.problem().facts["bytes_max"], 1_000);
    assert!(!is_present(&house, &bytes).await);
}

#[tokio::test]
async fn who_asks_before_sending_is_refused_before_sending() {
    let house = House::with(ServerConfig { blob_bytes_max: 1_000, ..config() }).await;
    let path = format!("/v1/blobs/{}", Digest::of(b"big"));
    let mut stream = raw::connect(&house.server).await;
    let head = Request::new("PUT", &path)
        .header("content-length", "5000")
        .header("expect", "100-continue");
    stream.write_all(&head.bytes("localhost")).await.unwrap();
    // Not one byte of the body is sent, and the answer is there.
    assert_eq!(raw::read_answer(&mut stream, false).await.problem().code, "too_large");
}

#[tokio::test]
async fn an_output_is_pinned_to_its_open_attempt_and_to_no_other() {
    let house = House::start().await;
    house.submit(b"film").await;
    let old = house.grant("s1", "c1").await;
    house.clock.advance(30_031);
    let new = house.grant("s2", "c1").await;
    let late = Request::new("PUT", &format!("/v1/blobs/{}", Digest::of(b"late"))).body(b"late");
    let late =
        pin_headers(&old).iter().fold(late, |request, (name, value)| request.header(name, value));
    let problem = raw::ask(&house.server, late).await.problem();
    assert_eq!((problem.status, problem.code.as_str()), (412, "stale_token"));
    assert_eq!(problem.facts["reason"], "superseded");
    assert_eq!(problem.facts["fence"], new.token);
    assert!(!is_present(&house, b"late").await);
    house.finish(&new, b"in time").await;
}

#[tokio::test]
async fn the_client_uploads_a_file_once_and_reads_it_back() {
    let house = House::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film.mp4");
    std::fs::write(&path, b"the film").unwrap();
    let client = Client::new(&house.server.url()).unwrap();
    let (digest, size) = client.upload(&path, &Upload::Input).await.unwrap();
    assert_eq!((digest, size), (Digest::of(b"the film"), 8));
    client.upload(&path, &Upload::Input).await.unwrap();
    let mut download = client.blob(digest).await.unwrap();
    let mut got = Vec::new();
    while let Some(piece) = download.next().await.unwrap() {
        got.extend_from_slice(&piece);
    }
    assert_eq!(got, b"the film");
    let pair = Pair { token: Number::new(5).unwrap(), lease_id: LeaseId(5) };
    let stranger = Upload::Output { job: "j1".to_owned(), pair };
    let refused = client.upload(&path, &stranger).await.unwrap_err();
    assert_eq!(refused.code(), Some("unknown_token"));
}

/// A bucket that lost an object, or a copy of it that is older than the records.
#[tokio::test]
async fn a_blob_that_is_missing_at_its_place_is_brought_again_by_whoever_has_it() {
    let house = House::start().await;
    let job = house.submit(b"film").await.job;
    let grant = house.grant("s1", "c1").await;
    house.finish(&grant, b"rendered").await;
    for bytes in [&b"film"[..], b"rendered"] {
        let digest = Digest::of(bytes);
        let View::Blob(Some(blob)) = house.store.query(Query::Blob(digest)).await.unwrap() else {
            panic!("it is there")
        };
        house.blobs.delete(Place::new(digest, blob.generation)).await.unwrap();
        let path = format!("/v1/blobs/{digest}");
        assert_ne!(raw::ask(&house.server, Request::new("GET", &path)).await.status, 200);
        let pin = house.client.pin(digest, &Upload::Input).await.unwrap();
        assert_eq!((pin.present, pin.size_bytes), (false, None));
        assert_eq!(pin.generation, Some(blob.generation.get()), "to the very same place");
        assert_eq!(house.put(bytes, &[]).await.status, 200);
        assert!(house.client.pin(digest, &Upload::Input).await.unwrap().present);
        let got = raw::ask(&house.server, Request::new("GET", &path)).await;
        assert_eq!((got.status, &got.body[..]), (200, bytes));
    }
    assert_eq!(house.state(&job).await, "complete");
}
