//! The lock guard against a real server: it renews, tells of doubt and loss, and releases.

use std::sync::Arc;

use palisade_api::{
    LockGuard,
    guard::{Edge, LockState, LockWish},
    wire::AcquireRequest,
};
use palisade_core::{Timestamp, clock::Clock, keeper::AbortReason};
use palisade_server::SystemEntropy;
use tokio::sync::watch;

use crate::support::{House, TestClock, eventually, lossy::Lossy};

const TTL_MS: u64 = 30_000;

fn wish(who: &str, wait_ms: u64) -> LockWish {
    LockWish {
        name: "door".parse().unwrap(),
        holder: who.parse().unwrap(),
        ttl_ms: TTL_MS,
        wait_ms,
        doubt_grace_ms: 60_000,
    }
}

/// A clock that tells when it was read: a keeper looks at it before all that it does.
#[derive(Debug)]
struct ReadClock {
    clock: Arc<TestClock>,
    reads: watch::Sender<u64>,
}

impl Clock for ReadClock {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        self.reads.send_modify(|count| *count += 1);
        now
    }
}

impl ReadClock {
    /// Advances, and waits until what was done upon that is done: a second look follows it.
    async fn advance(&self, ms: u64) {
        self.clock.advance(ms);
        let seen = *self.reads.borrow();
        self.reads.subscribe().wait_for(|count| *count >= seen + 2).await.unwrap();
    }
}

/// A holder's machine has a clock of its own.
fn edge() -> (Edge, Arc<TestClock>) {
    let clock = TestClock::new();
    let edge = Edge { clock: Arc::<TestClock>::clone(&clock), entropy: Arc::new(SystemEntropy) };
    (edge, clock)
}

async fn deadline(house: &House) -> Option<u64> {
    house.client.lock("door").await.unwrap().held.map(|held| held.deadline_ms)
}

async fn until_free(house: &House) {
    eventually(|| async { deadline(house).await.is_none().then_some(()) }).await;
}

#[tokio::test]
async fn a_guard_renews_by_itself_and_releases() {
    let house = House::start().await;
    let (edge, clock) = edge();
    let clock = Arc::new(ReadClock { clock, reads: watch::Sender::new(0) });
    let edge = Edge { clock: Arc::<ReadClock>::clone(&clock), ..edge };
    let guard = LockGuard::acquire(&house.client, wish("alice", 0), edge).await.unwrap();
    assert!(guard.may_act());
    let (granted, mut trusted) = (deadline(&house).await, guard.trusted_until());
    let before = *trusted.borrow();
    house.clock.advance(1);
    // Each less than what counts as a pause, together more than a third of the ttl.
    for _ in 0..2 {
        clock.advance(9_000).await;
    }
    trusted.wait_for(|until| *until > before).await.unwrap();
    eventually(|| async { (deadline(&house).await > granted).then_some(()) }).await;
    assert_eq!(*guard.state().borrow(), LockState::Held);
    guard.release().await.unwrap();
    assert_eq!(deadline(&house).await, None);
}

#[tokio::test]
async fn a_pause_is_doubt_first_and_then_held_again_where_nobody_took_the_lock() {
    let house = House::start().await;
    let (edge, clock) = edge();
    let guard = LockGuard::acquire(&house.client, wish("alice", 0), edge).await.unwrap();
    let mut changes = guard.changes();
    clock.advance(TTL_MS * 2);
    assert!(!guard.may_act(), "at once, before anything has been noticed");
    assert_eq!(changes.recv().await.unwrap(), LockState::Doubt);
    assert!(guard.doubted().is_cancelled());
    assert_eq!(changes.recv().await.unwrap(), LockState::Held);
    assert!(guard.may_act() && !guard.lost().is_cancelled());
    drop(guard);
    until_free(&house).await;
}

#[tokio::test]
async fn a_lock_that_went_to_another_is_told_as_lost_with_the_reason() {
    let house = House::start().await;
    let (edge, clock) = edge();
    let guard = LockGuard::acquire(&house.client, wish("alice", 0), edge.clone()).await.unwrap();
    let mut changes = guard.changes();
    house.clock.advance(TTL_MS + 1_000);
    let bob = LockGuard::acquire(&house.client, wish("bob", 0), edge).await.unwrap();
    clock.advance(TTL_MS + 1_000);
    assert_eq!(changes.recv().await.unwrap(), LockState::Doubt);
    let LockState::Lost(loss) = changes.recv().await.unwrap() else { panic!("it is lost") };
    assert_eq!(loss.reason, AbortReason::Lost);
    let detail = loss.detail.unwrap();
    assert!(detail.contains(&format!("the fence stands at {}", bob.pair().token)), "{detail}");
    assert!(guard.lost().is_cancelled() && !guard.may_act());
    let refused = guard.release().await.unwrap_err();
    assert_eq!(refused.code(), Some("lease_lost"), "{refused}");
    bob.release().await.unwrap();
}

#[tokio::test]
async fn a_guard_waits_for_its_turn_and_one_that_will_not_is_told_who_holds_it() {
    let house = House::start().await;
    let (edge, _clock) = edge();
    let alice = LockGuard::acquire(&house.client, wish("alice", 0), edge.clone()).await.unwrap();
    let told = LockGuard::acquire(&house.client, wish("bob", 0), edge.clone()).await.unwrap_err();
    assert_eq!(told.code(), Some("held"), "{told}");
    let (client, later) = (house.client.clone(), edge);
    let bob =
        tokio::spawn(async move { LockGuard::acquire(&client, wish("bob", 600_000), later).await });
    eventually(|| async {
        let lock = house.client.lock("door").await.unwrap();
        (lock.waiters.len() == 1).then_some(())
    })
    .await;
    let first = alice.pair();
    alice.release().await.unwrap();
    let bob = bob.await.unwrap().unwrap();
    assert!(bob.pair().token > first.token);
    drop(bob);
    until_free(&house).await;
}

#[tokio::test]
async fn a_lock_is_kept_though_every_second_reply_to_a_renewal_is_lost() {
    let house = House::start().await;
    let lossy = Lossy::before(house.server.address(), "/renew HTTP/1.1").await;
    let client = palisade_api::Client::new(&lossy.url()).unwrap();
    let (edge, clock) = edge();
    let clock = Arc::new(ReadClock { clock, reads: watch::Sender::new(0) });
    let edge = Edge { clock: Arc::<ReadClock>::clone(&clock), ..edge };
    let guard = LockGuard::acquire(&client, wish("alice", 0), edge).await.unwrap();
    let mut changes = guard.changes();
    let asked =
        AcquireRequest { holder: "bob".to_owned(), ttl_ms: None, wait_ms: 0, request_id: None };
    // Until it has happened often, and many ttls have passed.
    let mut rounds = 0_u64;
    while lossy.lost() < 4 || rounds * 4_000 < TTL_MS * 3 {
        house.clock.advance(4_000);
        clock.advance(4_000).await;
        rounds += 1;
        let told = house.client.acquire_lock("door", &asked).await.unwrap_err();
        assert_eq!(told.code(), Some("held"), "{told}");
        assert!(rounds < 500, "renewals are sent");
    }
    assert!(guard.may_act() && changes.try_recv().is_err(), "it was never even in doubt");
    guard.release().await.unwrap();
}
