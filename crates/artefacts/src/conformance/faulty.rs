//! Cells whose network is bad: replies get lost, requests get lost or land late, callers pause.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::register::{Cell, CellError, CompareAndSwap, Key, Swap, Version};

/// What happens to one swap.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Nothing.
    None,
    /// It is done; the answer gets lost.
    LoseReply,
    /// It gets lost; the caller cannot know.
    LoseRequest,
    /// The caller is told nothing, and it is done later: see [`FaultyCells::land`].
    Delay,
    /// The caller stops before sending it, until the gate is opened.
    Pause(Arc<Gate>),
    /// It is done, but the client's own repeat of it is answered with a conflict.
    DoneButConflict,
    /// It is refused before anything is done.
    NotDone,
}

/// Where a caller stops until it is let on.
#[derive(Debug)]
pub struct Gate {
    arrived: Semaphore,
    opened: Semaphore,
}

impl Gate {
    /// A closed gate.
    pub fn closed() -> Arc<Self> {
        Arc::new(Self { arrived: Semaphore::new(0), opened: Semaphore::new(0) })
    }

    /// Waits until somebody stands before it.
    pub async fn arrived(&self) {
        self.arrived.acquire().await.expect("never closed for good").forget();
    }

    /// Lets one through.
    pub fn open(&self) {
        self.opened.add_permits(1);
    }

    async fn pass(&self) {
        self.arrived.add_permits(1);
        self.opened.acquire().await.expect("never closed for good").forget();
    }
}

/// A swap that is still on its way.
type Late = (Key, Option<Version>, Bytes);

/// Cells behind a network that is bad as planned.
#[derive(Debug)]
pub struct FaultyCells {
    inner: Arc<dyn CompareAndSwap>,
    plan: Mutex<VecDeque<Fault>>,
    late: Mutex<Vec<Late>>,
    reads_fail: AtomicBool,
    /// Reads fail from the next swap that has a fault on.
    cut_off_after: AtomicBool,
}

impl FaultyCells {
    /// `inner`, with these faults for the next swaps, in order; afterwards none.
    pub fn new(inner: Arc<dyn CompareAndSwap>, plan: impl IntoIterator<Item = Fault>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            plan: Mutex::new(plan.into_iter().collect()),
            late: Mutex::default(),
            reads_fail: AtomicBool::new(false),
            cut_off_after: AtomicBool::new(false),
        })
    }

    /// From the next swap on, reads fail until [`FaultyCells::reconnect`].
    pub fn cut_off_after_next_swap(&self) {
        self.cut_off_after.store(true, Ordering::SeqCst);
    }

    /// Reads work again.
    pub fn reconnect(&self) {
        self.reads_fail.store(false, Ordering::SeqCst);
    }

    /// The delayed swaps arrive now; answers what became of each.
    pub async fn land(&self) -> Vec<Swap> {
        let late = std::mem::take(&mut *locked(&self.late));
        let mut landed = Vec::new();
        for (key, expected, bytes) in late {
            landed.push(self.inner.swap(&key, expected.as_ref(), bytes).await);
        }
        landed
    }

    fn error(&self, doing: &'static str) -> CellError {
        CellError::new(self.name(), doing, "the network is bad")
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl CompareAndSwap for FaultyCells {
    fn name(&self) -> String {
        format!("faulty {}", self.inner.name())
    }

    async fn read(&self, key: &Key) -> Result<Option<Cell>, CellError> {
        if self.reads_fail.load(Ordering::SeqCst) {
            return Err(self.error("read"));
        }
        self.inner.read(key).await
    }

    async fn swap(&self, key: &Key, expected: Option<&Version>, bytes: Bytes) -> Swap {
        let fault = locked(&self.plan).pop_front().unwrap_or(Fault::None);
        if self.cut_off_after.swap(false, Ordering::SeqCst) {
            self.reads_fail.store(true, Ordering::SeqCst);
        }
        match fault {
            Fault::None => self.inner.swap(key, expected, bytes).await,
            Fault::LoseReply => {
                let _ = self.inner.swap(key, expected, bytes).await;
                Swap::Unknown(self.error("hear of the swap"))
            }
            Fault::LoseRequest => Swap::Unknown(self.error("hear of the swap")),
            Fault::Delay => {
                locked(&self.late).push((key.clone(), expected.cloned(), bytes));
                Swap::Unknown(self.error("hear of the swap"))
            }
            Fault::Pause(gate) => {
                gate.pass().await;
                self.inner.swap(key, expected, bytes).await
            }
            Fault::DoneButConflict => match self.inner.swap(key, expected, bytes).await {
                Swap::Swapped => Swap::Conflict,
                other => other,
            },
            Fault::NotDone => Swap::NotDone(self.error("swap")),
        }
    }
}
