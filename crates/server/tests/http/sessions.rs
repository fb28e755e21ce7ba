//! Sessions: told at once of what was lost, and suspected when they are gone.

use std::time::Duration;

use palisade_api::{
    client::SessionStream,
    wire::{CancelRequest, SessionEvent, WorkerList},
};
use palisade_core::job::CloseReason;
use palisade_server::ServerConfig;

use crate::support::{House, config, eventually, raw};

/// Sessions are suspected after a second of the clock that the test moves.
async fn house() -> House {
    let config =
        ServerConfig { suspect_after_ms: 1_000, ping_every: Duration::from_hours(1), ..config() };
    House::with(config).await
}

async fn open(house: &House, session: &str) -> SessionStream {
    let mut stream = house.client.session(&format!("worker-{session}"), session).await.unwrap();
    assert_eq!(stream.next().await.unwrap(), Some(SessionEvent::Open));
    stream
}

/// Waits until the server has noticed that so many sessions are connected.
async fn until_connected(house: &House, count: u64) {
    house.until_metric("palisade_sessions", count).await;
}

#[tokio::test]
async fn a_session_is_told_at_once_of_a_cancel_and_of_a_takeover() {
    let house = house().await;
    let mut stream = open(&house, "s1").await;
    let cancelled = house.submit(b"one").await.job;
    let first = house.grant("s1", "c1").await;
    let all = CancelRequest { all: true, ..CancelRequest::default() };
    house.client.cancel(&cancelled, &all).await.unwrap();
    let event = SessionEvent::Cancelled { job: cancelled, token: first.token };
    assert_eq!(stream.next().await.unwrap(), Some(event));

    let lost = house.submit(b"two").await.job;
    let second = house.grant("s1", "c2").await;
    house.clock.advance(30_031);
    house.grant("s2", "c1").await;
    let reason = CloseReason::Superseded.to_string();
    let event = SessionEvent::Lost { job: lost, token: second.token, reason };
    assert_eq!(stream.next().await.unwrap(), Some(event));
}

#[tokio::test]
async fn a_session_hears_nothing_of_its_own_verbs_but_a_ping() {
    let house =
        House::with(ServerConfig { ping_every: Duration::from_millis(20), ..config() }).await;
    let mut stream = open(&house, "s1").await;
    house.submit(b"one").await;
    let grant = house.grant("s1", "c1").await;
    house.finish(&grant, b"out").await;
    for _ in 0..3 {
        assert_eq!(stream.next().await.unwrap(), Some(SessionEvent::Ping));
    }
}

#[tokio::test]
async fn a_session_of_before_the_servers_start_hears_of_its_leases() {
    let before = house().await;
    let job = before.submit(b"one").await.job;
    let grant = before.grant("s1", "c1").await;
    let House { server, store, blobs, clock, .. } = before;
    assert!(server.stop().await);
    let house = House::of(config(), store, blobs, clock).await;
    let mut stream = open(&house, "s1").await;
    let all = CancelRequest { all: true, ..CancelRequest::default() };
    house.client.cancel(&job, &all).await.unwrap();
    let event = SessionEvent::Cancelled { job, token: grant.token };
    assert_eq!(stream.next().await.unwrap(), Some(event));
}

#[tokio::test]
async fn a_worker_that_is_gone_loses_its_job_to_another_long_before_its_ttl() {
    let house = house().await;
    let job = house.submit(b"film").await.job;
    let stream = open(&house, "s1").await;
    house.grant("s1", "c1").await;
    let client = house.client.clone();
    let claim = house.claim("s2", "c1", 60_000);
    let waiting = tokio::spawn(async move { client.claim(&claim).await.unwrap() });
    house.until_waiting(1).await;
    // As when its process is killed: the connection is closed by the kernel.
    drop(stream);
    until_connected(&house, 0).await;
    house.clock.advance(1_000);
    let [grant] = waiting.await.unwrap().grants.try_into().unwrap();
    assert_eq!((grant.job.as_str(), grant.attempt), (job.as_str(), 2));
    let events = house.client.history(&job).await.unwrap().events;
    let names: Vec<_> =
        events.iter().map(|entry| serde_json::to_value(&entry.event).unwrap()).collect();
    assert!(names.iter().any(|event| event["event"] == "suspected"), "{names:?}");
}

#[tokio::test]
async fn a_session_that_came_back_or_has_another_connection_keeps_its_leases() {
    let house = house().await;
    let job = house.submit(b"film").await.job;
    let first = open(&house, "s1").await;
    let grant = house.grant("s1", "c1").await;
    let second = open(&house, "s1").await;
    drop(first);
    drop(second);
    until_connected(&house, 0).await;
    // Less than a second, and all of it together less than what the server takes for a gap of
    // its own.
    house.clock.advance(400);
    let third = open(&house, "s1").await;
    let _fourth = open(&house, "s1").await;
    drop(third);
    // Another session's end is noticed after all of that has been looked at.
    let other = house.submit(b"other").await.job;
    let gone = open(&house, "s2").await;
    house.grant("s2", "c1").await;
    drop(gone);
    until_connected(&house, 1).await;
    house.clock.advance(1_000);
    eventually(|| async { house.client.job(&other).await.unwrap().claimable.then_some(()) }).await;
    let kept = house.client.job(&job).await.unwrap();
    assert!(!kept.claimable && kept.attempts[0].token == grant.token);
}

#[tokio::test]
async fn a_lease_that_was_renewed_since_its_session_broke_is_left_alone() {
    let house = house().await;
    let job = house.submit(b"film").await.job;
    let stream = open(&house, "s1").await;
    let grant = house.grant("s1", "c1").await;
    let other = house.submit(b"other").await.job;
    let second = open(&house, "s2").await;
    house.grant("s2", "c1").await;
    drop((stream, second));
    until_connected(&house, 0).await;
    house.clock.advance(500);
    let beat = crate::support::beat("s1", 1, &[&grant]);
    house.client.heartbeat(&beat, Duration::from_secs(9)).await.unwrap();
    house.clock.advance(500);
    eventually(|| async { house.client.job(&other).await.unwrap().claimable.then_some(()) }).await;
    assert!(!house.client.job(&job).await.unwrap().claimable);
}

#[tokio::test]
async fn workers_are_listed_with_what_they_hold() {
    let house = house().await;
    let job = house.submit(b"film").await.job;
    let _stream = open(&house, "s1").await;
    let grant = house.grant("s2", "c1").await;
    let WorkerList { workers } = house.client.workers().await.unwrap();
    assert_eq!(workers.len(), 2);
    assert_eq!((workers[0].session.as_str(), workers[0].connected), ("s1", true));
    assert_eq!(workers[0].worker, "worker-s1");
    assert!(workers[0].leases.is_empty());
    assert_eq!((workers[1].session.as_str(), workers[1].connected), ("s2", false));
    assert_eq!(
        (workers[1].leases[0].job.as_str(), workers[1].leases[0].token),
        (&*job, grant.token)
    );
}

#[tokio::test]
async fn a_head_of_a_session_is_no_connection_of_it() {
    let house = house().await;
    let path = "/v1/workers/w/session?session=s1";
    let answer = raw::ask(&house.server, raw::Request::new("HEAD", path)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "application/x-ndjson");
    assert!(house.client.workers().await.unwrap().workers.is_empty());
}
