//! A store whose answers to claims and to requests for locks can be held back after their commit,
//! and which can be made to fail. It counts what it was handed back.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use palisade_artefacts::MemoryBlobs;
use palisade_core::Timestamp;
use palisade_store::{
    Failure, Store,
    command::{Answer, Command},
    events::{Announcer, Batch},
    memory::MemoryStore,
    query::{Query, View},
};
use tokio::sync::{broadcast, watch};

use super::{House, TestClock, config};

/// The store, and the gate before its answers.
#[derive(Debug)]
pub(crate) struct Gate {
    store: Arc<dyn Store>,
    held: watch::Sender<Option<usize>>,
    handed_back: watch::Sender<usize>,
    failure: Mutex<Option<Failure>>,
    /// What is told instead of what is committed.
    instead: Option<Announcer>,
    silent: AtomicBool,
}

impl Gate {
    pub(crate) fn over(store: MemoryStore) -> Arc<Self> {
        Self::around(Arc::new(store))
    }

    /// Before a store that others use as well, past this gate.
    pub(crate) fn around(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self::with(store, None))
    }

    /// A store that tells nobody what it commits.
    pub(crate) fn silent(store: MemoryStore) -> Arc<Self> {
        Arc::new(Self::with(Arc::new(store), Some(Announcer::default())))
    }

    fn with(store: Arc<dyn Store>, instead: Option<Announcer>) -> Self {
        let (held, handed_back) = (watch::Sender::new(None), watch::Sender::new(0));
        let (failure, silent) = (Mutex::new(None), AtomicBool::new(false));
        Self { store, held, handed_back, failure, instead, silent }
    }

    /// A server over this gate, on a clock of its own. `make` is one of the makers of gates.
    pub(crate) async fn house(make: impl FnOnce(MemoryStore) -> Arc<Self>) -> (House, Arc<Self>) {
        let clock = TestClock::new();
        let gate = make(MemoryStore::new(Arc::<TestClock>::clone(&clock)));
        let blobs = Arc::new(MemoryBlobs::new());
        (House::of(config(), Arc::<Self>::clone(&gate), blobs, clock).await, gate)
    }

    /// Waits until so many grants, or places in queues, were given back, or it was tried.
    pub(crate) async fn until_handed_back(&self, count: usize) {
        self.handed_back.subscribe().wait_for(|done| *done >= count).await.unwrap();
    }

    /// Tells those who listen to a silent store that they missed something.
    pub(crate) fn tell_of_a_gap(&self) {
        self.instead.as_ref().expect("it is a silent one").announce_gap();
    }

    /// From now on answers to claims and to requests for locks are held back.
    pub(crate) fn hold(&self) {
        self.held.send_replace(Some(0));
    }

    /// Waits until so many answers are held back.
    pub(crate) async fn until_held(&self, count: usize) {
        self.held.subscribe().wait_for(|held| *held == Some(count)).await.unwrap();
    }

    /// Lets all answers out, and holds no more.
    pub(crate) fn open(&self) {
        self.held.send_replace(None);
    }

    /// From now on no question is answered.
    pub(crate) fn silence(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    /// From now on everything fails like this.
    pub(crate) fn fail(&self, failure: Option<Failure>) {
        *self.failure.lock().unwrap() = failure;
    }
}

#[async_trait]
impl Store for Gate {
    async fn execute(&self, commands: Vec<Command>) -> Vec<Result<Answer, Failure>> {
        let failure = self.failure.lock().unwrap().clone();
        if let Some(failure) = failure {
            return vec![Err(failure); commands.len()];
        }
        let held =
            |command: &Command| matches!(command, Command::Claim(_) | Command::AcquireLock(_));
        let held = commands.iter().any(held);
        let given =
            |command: &&Command| matches!(command, Command::HandBack(_) | Command::LeaveLock(_));
        let given = commands.iter().filter(given).count();
        let answers = self.store.execute(commands).await;
        self.handed_back.send_modify(|done| *done += given);
        if held {
            self.held.send_if_modified(|held| {
                *held = held.map(|count| count + 1);
                held.is_some()
            });
            let _ = self.held.subscribe().wait_for(Option::is_none).await;
        }
        answers
    }

    async fn query(&self, query: Query) -> Result<View, Failure> {
        if self.silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let failure = self.failure.lock().unwrap().clone();
        failure.map_or(Ok(()), Err)?;
        self.store.query(query).await
    }

    fn changes(&self) -> broadcast::Receiver<Batch> {
        self.instead.as_ref().map_or_else(|| self.store.changes(), Announcer::listen)
    }

    fn now(&self) -> Timestamp {
        self.store.now()
    }
}
