//! A store and blobs in memory that can pause and die, and a clock that is moved.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::{TryStreamExt as _, stream::BoxStream};
use palisade_artefacts::{
    BlobError, BlobReader, Blobs, ByteRange, MemoryBlobs, Place, Upload, blobs::Listed, write,
};
use palisade_core::{Digest, Refusal, Timestamp, blob::BlobState, clock::Clock};
use palisade_store::{
    Failure, Store, StoreExt,
    command::{Answer, BeginBlob, Command, FinishBlob, Pin},
    events::Batch,
    memory::MemoryStore,
    query::{Query, View},
};
use tokio::sync::{Semaphore, broadcast};

use super::super::{Collection, Collector};

pub(super) const GRACE_MS: u64 = 10_000;
pub(super) const TOMBSTONE_MS: u64 = 100_000;

#[derive(Debug)]
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// Whether the call at which a process dies was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Break {
    BeforeIt,
    AfterIt,
}

/// How many calls a process has left.
#[derive(Debug)]
struct Life {
    left: AtomicUsize,
    when: Mutex<Break>,
}

impl Life {
    /// Whether this call is done, and whether it is answered.
    fn call(&self) -> (bool, bool) {
        let spent =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match spent {
            Ok(1) => (*self.when.lock().expect("unbroken") == Break::AfterIt, false),
            Ok(_) => (true, true),
            Err(_) => (false, false),
        }
    }
}

/// The store, as a process reaches it that may die.
#[derive(Debug)]
struct Mortal {
    inner: Arc<dyn Store>,
    life: Arc<Life>,
}

fn dead() -> Failure {
    Failure::Unknown("the process died".to_owned())
}

#[async_trait]
impl Store for Mortal {
    async fn execute(&self, commands: Vec<Command>) -> Vec<Result<Answer, Failure>> {
        let (done, answered) = self.life.call();
        let count = commands.len();
        let answers = if done { self.inner.execute(commands).await } else { Vec::new() };
        if answered { answers } else { (0..count).map(|_| Err(dead())).collect() }
    }

    async fn query(&self, query: Query) -> Result<View, Failure> {
        if self.life.call().1 { self.inner.query(query).await } else { Err(dead()) }
    }

    fn changes(&self) -> broadcast::Receiver<Batch> {
        self.inner.changes()
    }

    fn now(&self) -> Timestamp {
        self.inner.now()
    }
}

/// Blobs in memory whose deletes can be held, and whose process may die.
#[derive(Debug)]
pub(super) struct StagedBlobs {
    inner: MemoryBlobs,
    life: Arc<Life>,
    gate: Mutex<Option<Arc<Gate>>>,
}

/// Holds the first delete until it is opened.
#[derive(Debug)]
pub(super) struct Gate {
    reached: Semaphore,
    opened: Semaphore,
}

impl Gate {
    pub(super) async fn reached(&self) {
        self.reached.acquire().await.expect("open").forget();
    }

    pub(super) fn open(&self) {
        self.opened.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}

impl StagedBlobs {
    pub(super) fn pause_before_deletes(&self) -> Arc<Gate> {
        let gate = Arc::new(Gate { reached: Semaphore::new(0), opened: Semaphore::new(0) });
        *self.gate.lock().expect("unbroken") = Some(Arc::clone(&gate));
        gate
    }
}

#[async_trait]
impl Blobs for StagedBlobs {
    async fn begin(&self, at: Option<Place>, max: u64) -> Result<Box<dyn Upload>, BlobError> {
        self.inner.begin(at, max).await
    }

    async fn open(&self, place: Place, range: ByteRange) -> Result<BlobReader, BlobError> {
        self.inner.open(place, range).await
    }

    async fn size(&self, place: Place) -> Result<Option<u64>, BlobError> {
        self.inner.size(place).await
    }

    async fn delete(&self, place: Place) -> Result<(), BlobError> {
        let gate = self.gate.lock().expect("unbroken").clone();
        if let Some(gate) = gate {
            gate.reached.add_permits(1);
            gate.opened.acquire().await.expect("open").forget();
        }
        let (done, answered) = self.life.call();
        if done {
            self.inner.delete(place).await?;
        }
        if answered { Ok(()) } else { Err(BlobError::Source(std::io::Error::other("it died"))) }
    }

    async fn list(&self) -> Result<BoxStream<'static, Result<Listed, BlobError>>, BlobError> {
        self.inner.list().await
    }

    fn local_path(&self, place: Place) -> Option<PathBuf> {
        self.inner.local_path(place)
    }
}

/// All of it.
#[derive(Debug)]
pub(super) struct Stage {
    hands: Arc<Hands>,
    store: Arc<dyn Store>,
    life: Arc<Life>,
    pub(super) blobs: Arc<StagedBlobs>,
}

impl Stage {
    pub(super) fn new() -> Self {
        let hands = Arc::new(Hands(AtomicU64::new(1_700_000_000_000)));
        let store = Arc::new(MemoryStore::new(Arc::<Hands>::clone(&hands)));
        let when = Mutex::new(Break::BeforeIt);
        let life = Arc::new(Life { left: AtomicUsize::new(usize::MAX), when });
        let (inner, gate) = (MemoryBlobs::new(), Mutex::new(None));
        let blobs = Arc::new(StagedBlobs { inner, life: Arc::clone(&life), gate });
        Self { hands, store, life, blobs }
    }

    pub(super) fn collector(&self) -> Collector {
        let settings = Collection {
            grace_ms: GRACE_MS,
            tombstone_ms: TOMBSTONE_MS,
            keep_jobs_ms: Some(1_000_000),
            ..Collection::default()
        };
        let (inner, life) = (Arc::clone(&self.store), Arc::clone(&self.life));
        Collector::new(Arc::new(Mortal { inner, life }), Arc::clone(&self.blobs) as _, settings)
    }

    pub(super) fn dies_after(&self, calls: usize, when: Break) {
        *self.life.when.lock().expect("unbroken") = when;
        self.life.left.store(calls + 1, Ordering::SeqCst);
    }

    pub(super) fn lives_again(&self) {
        self.life.left.store(usize::MAX, Ordering::SeqCst);
    }

    pub(super) fn pass(&self, ms: u64) {
        self.hands.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) fn pass_grace(&self) {
        self.pass(GRACE_MS);
    }

    /// Tells a writer its place, pinned for so long.
    pub(super) async fn begin(&self, bytes: &[u8], pin_ms: u64) -> Place {
        let digest = Digest::of(bytes);
        let pin = Pin::Until(self.store.now().plus_ms(pin_ms));
        let begun = self.store.run(BeginBlob { digest, pin }).await.expect("begun");
        Place::new(digest, begun.generation)
    }

    pub(super) async fn finish(&self, place: Place, size_bytes: u64) -> Result<(), Refusal> {
        let Place { digest, generation } = place;
        match self.store.run(FinishBlob { digest, generation, size_bytes }).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(other) => panic!("{other:?}"),
        }
    }

    /// Brings a blob as a writer does: begins again when its place was condemned meanwhile.
    pub(super) async fn bring(&self, bytes: &[u8], pin_ms: u64) -> Place {
        loop {
            let place = self.begin(bytes, pin_ms).await;
            if self.state(place.digest).await == Some(BlobState::Present) {
                return place;
            }
            write(self.blobs.as_ref(), place, 1 << 20, bytes).await.expect("written");
            if self.finish(place, bytes.len() as u64).await.is_ok() {
                return place;
            }
        }
    }

    pub(super) async fn is_there(&self, place: Place) -> bool {
        self.blobs.size(place).await.expect("a size").is_some()
    }

    pub(super) async fn state(&self, digest: Digest) -> Option<BlobState> {
        match self.store.query(Query::Blob(digest)).await {
            Ok(View::Blob(blob)) => blob.map(|blob| blob.state),
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn places(&self) -> Vec<Place> {
        let listed = self.blobs.list().await.expect("a list");
        listed.map_ok(|found| found.place).try_collect().await.expect("all of it")
    }
}
