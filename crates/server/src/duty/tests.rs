use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use palisade_core::{Timestamp, clock::Clock};
use palisade_store::{
    command::{Answer, Command},
    events::Batch,
    memory::MemoryStore,
    query::{Query, View},
};
use tokio::sync::broadcast;

use super::*;

#[derive(Debug, Default)]
struct TestClock(AtomicU64);

impl TestClock {
    fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000 + self.0.load(Ordering::SeqCst))
    }
}

/// Numbers that are all different.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn next_u128(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

/// A store that several servers have in common, or so it says.
#[derive(Debug)]
struct InCommon {
    store: MemoryStore,
    shared: bool,
}

#[async_trait]
impl Store for InCommon {
    async fn execute(&self, commands: Vec<Command>) -> Vec<Result<Answer, Failure>> {
        self.store.execute(commands).await
    }

    async fn query(&self, query: Query) -> Result<View, Failure> {
        self.store.query(query).await
    }

    fn changes(&self) -> broadcast::Receiver<Batch> {
        self.store.changes()
    }

    fn now(&self) -> Timestamp {
        self.store.now()
    }

    fn is_shared(&self) -> bool {
        self.shared
    }
}

const EVERY: Duration = Duration::from_secs(10);

/// Two servers, and the clock of their store.
fn two(shared: bool) -> (Duty, Duty, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let store = MemoryStore::new(Arc::<TestClock>::clone(&clock));
    let store: Arc<dyn Store> = Arc::new(InCommon { store, shared });
    let entropy: Arc<dyn Entropy> = Arc::new(Counting::default());
    let duty = || Duty::of(Arc::clone(&store), Arc::clone(&entropy), "collection", EVERY);
    (duty(), duty(), clock)
}

#[tokio::test]
async fn one_of_two_servers_does_it_for_as_long_as_it_goes_on() {
    let (mut one, mut two, clock) = two(true);
    for _ in 0..20 {
        assert!(one.is_ours().await);
        assert!(!two.is_ours().await);
        clock.pass(10_000);
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_followed_by_another_and_told_so_when_it_wakes() {
    let (mut one, mut two, clock) = two(true);
    assert!(one.is_ours().await);
    clock.pass(29_000);
    assert!(!two.is_ours().await);
    clock.pass(2_000);
    assert!(two.is_ours().await);
    assert!(!one.is_ours().await, "it slept through the end of its lease");
}

#[tokio::test]
async fn a_server_that_ends_hands_its_turn_over() {
    let (mut one, mut two, _clock) = two(true);
    assert!(one.is_ours().await);
    one.hand_over().await;
    assert!(two.is_ours().await);
}

#[tokio::test]
async fn a_server_alone_takes_no_turns() {
    let (mut one, mut two, _clock) = two(false);
    assert!(one.is_ours().await);
    assert!(two.is_ours().await);
}
