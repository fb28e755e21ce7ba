//! Lease locks over HTTP.

use palisade_api::wire::{AcquireRequest, AcquireResponse, PairWire};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::support::{House, eventually, gate::Gate, raw};

pub(crate) const LOCK: &str = "exports/42";

pub(crate) fn wish(who: &str, wait_ms: u64) -> AcquireRequest {
    AcquireRequest {
        holder: who.to_owned(),
        ttl_ms: Some(30_000),
        wait_ms,
        request_id: Some(format!("request-{who}")),
    }
}

pub(crate) fn pair(held: &AcquireResponse) -> PairWire {
    PairWire { token: held.token, lease: held.lease.clone() }
}

pub(crate) async fn until_waiting(house: &House, who: &[&str]) {
    eventually(|| async {
        let lock = house.client.lock(LOCK).await.unwrap();
        let waiting: Vec<_> = lock.waiters.iter().map(|waiter| waiter.holder.as_str()).collect();
        (waiting == who).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_lock_is_acquired_renewed_released_and_shown() {
    let house = House::start().await;
    let held = house.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap();
    assert_eq!((held.ttl_ms, held.waited_ms), (30_000, 0));
    assert_eq!(house.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap(), held);
    let second = house.client.acquire_lock(LOCK, &wish("bob", 0)).await.unwrap_err();
    assert_eq!(second.code(), Some("held"), "{second}");
    let within = std::time::Duration::from_secs(30);
    let renewed = house.client.renew_lock(LOCK, &pair(&held), within).await.unwrap();
    assert_eq!(renewed.ttl_ms, 30_000);
    let shown = house.client.lock(LOCK).await.unwrap();
    assert_eq!(shown.held.as_ref().map(|held| held.holder.as_str()), Some("alice"));
    assert_eq!(house.client.locks("prefix=exports/").await.unwrap().locks, [shown]);
    assert!(house.client.locks("prefix=other").await.unwrap().locks.is_empty());
    house.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    house.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    let lost = house.client.renew_lock(LOCK, &pair(&held), within).await.unwrap_err();
    assert_eq!(lost.code(), Some("lease_lost"), "{lost}");
    let stranger = PairWire { lease: "0".repeat(32), ..pair(&held) };
    let unknown = house.client.renew_lock(LOCK, &stranger, within).await.unwrap_err();
    assert_eq!(unknown.code(), Some("unknown_token"), "{unknown}");
}

#[tokio::test]
async fn a_locks_history_tells_of_its_holders_and_of_no_other_lock() {
    let house = House::start().await;
    let held = house.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap();
    let other = house.client.acquire_lock("exports/43", &wish("carol", 0)).await.unwrap();
    house.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    let next = house.client.acquire_lock(LOCK, &wish("bob", 0)).await.unwrap();
    let told = house.client.lock_history(LOCK, 100).await.unwrap();
    let text: Vec<_> = told.events.iter().map(|entry| entry.event.what.to_string()).collect();
    assert_eq!(text.len(), 3, "{text:?}");
    assert!(text[0].contains("granted to alice") && text[1].contains("of alice was closed"));
    assert!(text[2].contains(&format!("granted to bob under token {}", next.token)), "{text:?}");
    assert!(told.events.is_sorted_by_key(|entry| entry.position));
    let newest = house.client.lock_history(LOCK, 1).await.unwrap();
    assert_eq!(newest.events, told.events[2..]);
    let nobodys = house.client.lock_history("exports/44", 100).await.unwrap_err();
    assert_eq!(nobodys.code(), Some("not_found"), "{nobodys}");
    // As a path, and not where a lock is itself called so.
    let read =
        async |path: &str| raw::ask(&house.server, raw::Request::new("GET", path)).await.json();
    let path = format!("/v1/locks/{LOCK}/history");
    assert_eq!(read(&path).await["events"].as_array().map(Vec::len), Some(3));
    let called_so = format!("{LOCK}/history");
    house.client.acquire_lock(&called_so, &wish("dave", 0)).await.unwrap();
    assert_eq!(read(&path).await["held"]["holder"], "dave");
    assert_eq!(house.client.lock_history(LOCK, 100).await.unwrap(), told);
    house.client.release_lock("exports/43", &pair(&other)).await.unwrap();
    assert_eq!(read("/v1/locks/exports/42?limit=3").await["field"], "limit");
}

#[tokio::test]
async fn waiters_are_handed_the_lock_in_order_as_it_is_released() {
    let house = House::start().await;
    let mut held = house.client.acquire_lock(LOCK, &wish("w0", 0)).await.unwrap();
    let mut waits = Vec::new();
    let mut names = Vec::new();
    for index in 1..=32 {
        let (client, wish) = (house.client.clone(), wish(&format!("w{index}"), 600_000));
        names.push(wish.holder.clone());
        waits.push(tokio::spawn(async move { client.acquire_lock(LOCK, &wish).await }));
        until_waiting(&house, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    house.clock.advance(5_000);
    for (index, wait) in waits.into_iter().enumerate() {
        house.client.release_lock(LOCK, &pair(&held)).await.unwrap();
        let next = wait.await.unwrap().unwrap();
        assert!(next.token > held.token, "w{} comes after", index + 1);
        assert_eq!(next.waited_ms, 5_000);
        held = next;
    }
}

#[tokio::test]
async fn a_waiter_that_hangs_up_leaves_the_queue() {
    let house = House::start().await;
    let held = house.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap();
    let mut stream = raw::connect(&house.server).await;
    let body = serde_json::to_string(&wish("bob", 600_000)).unwrap();
    let request = raw::Request::json(&format!("/v1/locks/{LOCK}/acquire"), &body);
    let bytes = request.bytes(&house.server.address().to_string());
    stream.write_all(&bytes).await.unwrap();
    until_waiting(&house, &["bob"]).await;
    drop(stream);
    until_waiting(&house, &[]).await;
    house.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    assert_eq!(house.client.lock(LOCK).await.unwrap().held, None);
}

/// Sends a wish for the lock, and answers its connection.
pub(crate) async fn asking(house: &House, wish: &AcquireRequest) -> TcpStream {
    let mut stream = raw::connect(&house.server).await;
    let body = serde_json::to_string(wish).unwrap();
    let request = raw::Request::json(&format!("/v1/locks/{LOCK}/acquire"), &body);
    stream.write_all(&request.bytes("localhost")).await.unwrap();
    stream
}

async fn until_free(house: &House) {
    eventually(|| async {
        let lock = house.client.lock(LOCK).await;
        lock.is_ok_and(|lock| lock.held.is_none()).then_some(())
    })
    .await;
}

/// A store that is slow to answer, and a client that does not wait for it: between the commit and
/// the answer it goes, and the lock must not stay with it for a ttl.
#[tokio::test]
async fn a_lock_granted_to_somebody_who_hung_up_is_free_at_once() {
    let (house, gate) = Gate::house(Gate::over).await;
    gate.hold();
    let stream = asking(&house, &wish("alice", 0)).await;
    gate.until_held(1).await;
    let shown = house.client.lock(LOCK).await.unwrap();
    assert_eq!(shown.held.map(|held| held.holder).as_deref(), Some("alice"), "it is committed");
    drop(stream);
    house.until_metric("palisade_lock_requests_open", 0).await;
    gate.open();
    until_free(&house).await;
    house.client.acquire_lock(LOCK, &wish("bob", 0)).await.expect("it is free");
}

/// Whoever is woken need not ask the store again: a hand-over is one commit, the release's.
#[tokio::test]
async fn a_waiter_is_handed_the_lock_by_the_release_itself() {
    let (house, gate) = Gate::house(Gate::over).await;
    let held = house.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap();
    let client = house.client.clone();
    let bob = tokio::spawn(async move { client.acquire_lock(LOCK, &wish("bob", 600_000)).await });
    until_waiting(&house, &["bob"]).await;
    // Both know their places; from now on the store answers no request for a lock.
    let carol = asking(&house, &wish("carol", 600_000)).await;
    house.until_metric("palisade_lock_waiters", 2).await;
    gate.hold();
    house.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    let bob = bob.await.unwrap().expect("it is his");
    let within = std::time::Duration::from_secs(30);
    house.client.renew_lock(LOCK, &pair(&bob), within).await.expect("the pair is the grant's");
    gate.open();
    drop(carol);
}

/// After a fail-over that another server settled, say.
#[tokio::test]
async fn whoever_waits_looks_for_itself_when_the_journal_is_another_one() {
    let (house, gate) = Gate::house(Gate::silent).await;
    let held = house.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap();
    let client = house.client.clone();
    let bob = tokio::spawn(async move { client.acquire_lock(LOCK, &wish("bob", 600_000)).await });
    until_waiting(&house, &["bob"]).await;
    house.until_metric("palisade_lock_waiters", 1).await;
    house.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    gate.tell_of_a_gap();
    let limit = std::time::Duration::from_mins(1);
    tokio::time::timeout(limit, bob).await.expect("he looks").unwrap().expect("it is his");
}

#[tokio::test]
async fn a_wish_that_has_lapsed_is_told_so_and_never_granted() {
    let house = House::start().await;
    let held = house.client.acquire_lock(LOCK, &wish("alice", 0)).await.unwrap();
    let client = house.client.clone();
    let bob = tokio::spawn(async move { client.acquire_lock(LOCK, &wish("bob", 200)).await });
    until_waiting(&house, &["bob"]).await;
    // The clock that counts is moved; the server looks at it when bob's time is over.
    house.clock.advance(200);
    let told = bob.await.unwrap().unwrap_err();
    assert_eq!(told.code(), Some("held"), "{told}");
    until_waiting(&house, &[]).await;
    house.client.release_lock(LOCK, &pair(&held)).await.unwrap();
    let lock = house.client.lock(LOCK).await.unwrap();
    assert_eq!((lock.held, lock.fence), (None, held.token + 1), "nobody was granted it");
}

#[tokio::test]
async fn what_is_not_allowed_is_named() {
    let house = House::start().await;
    let too_long = AcquireRequest { ttl_ms: Some(u64::MAX >> 12), ..wish("alice", 0) };
    let refused = house.client.acquire_lock(LOCK, &too_long).await.unwrap_err();
    assert!(refused.to_string().contains("ttl_ms"), "{refused}");
    let refused = house.client.acquire_lock(".hidden", &wish("alice", 0)).await.unwrap_err();
    assert_eq!(refused.code(), Some("invalid"), "{refused}");
    let answer = raw::ask(&house.server, raw::Request::json("/v1/locks/a/steal", "{}")).await;
    assert_eq!(answer.problem().code, "not_found");
    let none = raw::ask(&house.server, raw::Request::json("/v1/locks/a", "{}")).await.problem();
    assert_eq!(none.code, "not_found");
    assert!(none.detail.contains("acquire") && none.detail.contains("release"), "{}", none.detail);
}
