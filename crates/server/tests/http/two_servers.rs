//! Two servers on one store: a client that goes on to the other one loses nothing to the first,
//! which notices late that nobody listens there any more.

use std::{sync::Arc, time::Duration};

use palisade_api::{Client, ClientError, client::Upload, wire::SubmitRequest};
use palisade_artefacts::MemoryBlobs;
use palisade_core::Digest;
use palisade_store::{Store, memory::MemoryStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    locks::{LOCK, asking, pair, until_waiting, wish},
    support::{House, TestClock, config, gate::Gate, raw},
};

/// The first server, the gate between it and the store, and the second server.
async fn two() -> (House, Arc<Gate>, House) {
    let clock = TestClock::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::<TestClock>::clone(&clock)));
    let gate = Gate::around(Arc::clone(&store));
    let blobs = Arc::new(MemoryBlobs::new());
    let behind = Arc::<Gate>::clone(&gate);
    let first =
        House::of(config(), behind, Arc::<MemoryBlobs>::clone(&blobs), Arc::clone(&clock)).await;
    let second = House::of(config(), store, blobs, clock).await;
    (first, gate, second)
}

#[tokio::test]
async fn a_wish_asked_at_another_server_keeps_its_place() {
    let (first, gate, second) = two().await;
    let held = first.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap();
    let stream = asking(&first, &wish("bob", 600_000)).await;
    until_waiting(&second, &["bob"]).await;
    let carol = asking(&first, &wish("carol", 600_000)).await;
    until_waiting(&second, &["bob", "carol"]).await;
    let client = second.client.clone();
    let bob = tokio::spawn(async move { client.acquire_lock(LOCK, &wish("bob", 600_000)).await });
    second.until_metric("palisade_lock_waiters", 1).await;
    drop(stream);
    gate.until_handed_back(1).await;
    until_waiting(&second, &["bob", "carol"]).await;
    second.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    bob.await.unwrap().expect("he came before carol");
    drop(carol);
}

/// Its clients are told to ask another, and it does not know which of them will.
#[tokio::test]
async fn a_server_that_stops_leaves_its_waiters_their_places() {
    let (first, _, second) = two().await;
    let held = second.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap();
    let client = first.client.clone();
    let bob = tokio::spawn(async move { client.acquire_lock(LOCK, &wish("bob", 600_000)).await });
    until_waiting(&second, &["bob"]).await;
    let carol = asking(&second, &wish("carol", 600_000)).await;
    until_waiting(&second, &["bob", "carol"]).await;
    assert!(first.server.stop().await);
    assert_eq!(bob.await.unwrap().unwrap_err().code(), Some("unavailable"));
    until_waiting(&second, &["bob", "carol"]).await;
    second.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    let bob = second.client.acquire_lock(LOCK, &wish("bob", 600_000)).await.unwrap();
    assert!(bob.token > held.token);
    drop(carol);
}

/// The first server's answer is late, its client has gone to the second meanwhile, and been given
/// the same: handed back, the job would be another's while its worker renders.
#[tokio::test]
async fn a_grant_that_another_server_handed_over_is_not_handed_back() {
    let (first, gate, second) = two().await;
    let job = second.submit(b"film").await.job;
    gate.hold();
    let claim = first.claim("s1", "c1", 0);
    let body = serde_json::to_string(&claim).unwrap();
    let mut stream = raw::connect(&first.server).await;
    let request = raw::Request::json("/v1/claims", &body);
    stream.write_all(&request.bytes("localhost")).await.unwrap();
    gate.until_held(1).await;
    second.clock.advance(1);
    let grant = second.grant("s1", "c1").await;
    drop(stream);
    first.until_metric("palisade_claims_waiting", 0).await;
    gate.open();
    gate.until_handed_back(1).await;
    assert_eq!(second.state(&job).await, "running");
    second.finish(&grant, b"rendered").await;
    assert_eq!(second.state(&job).await, "complete");
}

/// The same the other way round: the first server serves late what the second has answered.
#[tokio::test]
async fn a_late_duplicate_of_a_claim_hands_nothing_back() {
    let (first, gate, second) = two().await;
    let job = second.submit(b"film").await.job;
    let grant = second.grant("s1", "c1").await;
    gate.hold();
    let body = serde_json::to_string(&first.claim("s1", "c1", 0)).unwrap();
    let mut stream = raw::connect(&first.server).await;
    let request = raw::Request::json("/v1/claims", &body);
    stream.write_all(&request.bytes("localhost")).await.unwrap();
    gate.until_held(1).await;
    drop(stream);
    first.until_metric("palisade_claims_waiting", 0).await;
    gate.open();
    // Everything that it would give back is given back before it has stopped.
    assert!(first.server.stop().await);
    assert_eq!(second.state(&job).await, "running");
    second.finish(&grant, b"rendered").await;
    let wait = second.client.wait(&job, Duration::from_secs(1)).await.unwrap();
    assert_eq!(wait.state, "complete");
}

/// What stands before a server: answers each request the same, or hangs up without a word.
async fn stand_in(answer: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.windows(4).any(|four| four == b"\r\n\r\n") {
                    if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    url
}

const LOST: &str = "";
const BAD_GATEWAY: &str =
    "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>";

/// A wish with an id by which it is known again.
async fn known(house: &House, request_id: Option<&str>) -> SubmitRequest {
    let request_id = request_id.map(str::to_owned);
    SubmitRequest { request_id, ..house.wish(b"film").await }
}

#[tokio::test]
async fn what_is_known_again_by_its_id_is_asked_of_the_next_server_within_the_call() {
    let house = House::start().await;
    let wanted = known(&house, Some("one")).await;
    for (round, answer) in [LOST, BAD_GATEWAY].into_iter().enumerate() {
        let list = format!("{},{}", stand_in(answer).await, house.server.url());
        let client = || Client::new(&list).unwrap();
        let pin = client().pin(Digest::of(b"film"), &Upload::Input).await.unwrap();
        assert!(pin.present);
        let first = client().submit(&wanted).await.unwrap();
        let again = client().submit(&wanted).await.unwrap();
        assert_eq!((first.job, first.submission), (again.job, again.submission));
        let lock = client().acquire_lock(LOCK, &wish(&format!("w{round}"), 0)).await.unwrap();
        client().release_lock(LOCK, &pair(&lock)).await.unwrap();
    }
}

#[tokio::test]
async fn what_might_be_done_twice_is_left_to_its_caller_who_is_told_whom_it_asked() {
    let house = House::start().await;
    let wish = known(&house, None).await;
    let lost = stand_in(LOST).await;
    let list = format!("{lost},{}", house.server.url());
    let told = Client::new(&list).unwrap().submit(&wish).await.unwrap_err();
    assert!(matches!(&told, ClientError::Unknown { url, .. } if *url == lost), "{told:?}");
    let gateway = stand_in(BAD_GATEWAY).await;
    let list = format!("{gateway},{}", house.server.url());
    let told = Client::new(&list).unwrap().submit(&wish).await.unwrap_err();
    let ClientError::Foreign { url, status: 502, .. } = &told else { panic!("{told:?}") };
    assert_eq!(*url, gateway);
}
