//! An object store in memory with a habit, which counts the uploads that nobody ended.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
    memory::InMemory, path::Path,
};
use tokio::sync::Semaphore;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    None,
    /// Puts, and says that it failed.
    LosePut,
    /// Fails, and says so.
    RefusePut,
    LoseComplete,
    RefuseComplete,
    /// Fails at the second part.
    RefusePart,
    /// Keeps each part until it is let go.
    HoldParts,
}

/// The store.
#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) inner: InMemory,
    habit: Habit,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Counts {
    unfinished: AtomicUsize,
    waiting: AtomicUsize,
    arrived: Semaphore,
    let_go: Semaphore,
}

impl Faulty {
    pub(super) fn new(inner: InMemory, habit: Habit) -> Self {
        let counts = Counts {
            unfinished: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            arrived: Semaphore::new(0),
            let_go: Semaphore::new(0),
        };
        Self { inner, habit, counts: Arc::new(counts) }
    }

    /// Uploads that were neither completed nor aborted, once those that are being aborted are.
    pub(super) async fn settled_unfinished(&self) -> usize {
        for _ in 0..1_000 {
            if self.counts.unfinished.load(Ordering::SeqCst) == 0 {
                return 0;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        self.counts.unfinished.load(Ordering::SeqCst)
    }

    /// Waits until another part is on its way; answers how many are.
    pub(super) async fn one_part_waits(&self) -> usize {
        self.counts.arrived.acquire().await.expect("open").forget();
        self.counts.waiting.load(Ordering::SeqCst)
    }

    pub(super) fn let_one_part_go(&self) {
        self.counts.let_go.add_permits(1);
    }
}

fn broken() -> Error {
    Error::Generic { store: "faulty", source: "the connection broke".into() }
}

impl fmt::Display for Faulty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Faulty({:?})", self.habit)
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        if self.habit == Habit::RefusePut {
            return Err(broken());
        }
        let put = self.inner.put_opts(location, payload, options).await;
        if self.habit == Habit::LosePut { Err(broken()) } else { put }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(location, options).await?;
        self.counts.unfinished.fetch_add(1, Ordering::SeqCst);
        let (habit, counts) = (self.habit, Arc::clone(&self.counts));
        Ok(Box::new(FaultyUpload { inner, habit, counts, parts: 0 }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    habit: Habit,
    counts: Arc<Counts>,
    parts: usize,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        self.parts += 1;
        if self.habit == Habit::RefusePart && self.parts == 2 {
            return Box::pin(async { Err(broken()) });
        }
        let sending = self.inner.put_part(part);
        if self.habit != Habit::HoldParts {
            return sending;
        }
        let counts = Arc::clone(&self.counts);
        Box::pin(async move {
            counts.waiting.fetch_add(1, Ordering::SeqCst);
            counts.arrived.add_permits(1);
            counts.let_go.acquire().await.expect("open").forget();
            counts.waiting.fetch_sub(1, Ordering::SeqCst);
            sending.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        if self.habit == Habit::RefuseComplete {
            return Err(broken());
        }
        let done = self.inner.complete().await;
        if self.habit == Habit::LoseComplete {
            // It is an upload no more; the abort that follows finds nothing.
            return Err(broken());
        }
        self.counts.unfinished.fetch_sub(1, Ordering::SeqCst);
        done
    }

    async fn abort(&mut self) -> Result<()> {
        self.counts.unfinished.fetch_sub(1, Ordering::SeqCst);
        self.inner.abort().await
    }
}
