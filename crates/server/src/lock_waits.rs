//! Those who wait for a lock, woken in memory at the commit that grants it to them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use palisade_core::{
    LockName, RequestId,
    history::{Event, Subject, What},
    limits,
    lock::{Acquired, Holding},
    refusal::Refusal,
};
use palisade_store::{Failure, StoreExt, command::AcquireLock};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    dispatch::Returned,
    problems::{self, Rejection},
};

/// How long a waiter counts as being there without a word of it, in ms.
pub(crate) const ALIVE_MS: u64 = 30_000;
/// How often it says so, in ms.
const LOOK_AGAIN_MS: u64 = 10_000;

/// The waits of this server.
#[derive(Debug, Default)]
pub(crate) struct LockWaits(Mutex<BTreeMap<(LockName, RequestId), Arc<Wait>>>);

/// The connection on which a wish is answered.
#[derive(Debug, Default)]
struct Wait {
    /// Its place in the queue; zero until it is known.
    ticket: AtomicU64,
    news: Notify,
    /// Another connection asked for the same: of two, the later one counts.
    taken_over: CancellationToken,
}

impl LockWaits {
    /// What was committed: wakes who was granted a lock, and whoever may be first now.
    pub(crate) fn tell(&self, events: &[Event]) {
        let waits = self.lock();
        if waits.is_empty() {
            return;
        }
        for event in events {
            let Subject::Lock(name) = &event.subject else { continue };
            let granted = match event.what {
                What::LockGranted { ticket, .. } => Some(ticket.get()),
                // Somebody else may be the first now, and must keep the time.
                What::LockLeft { .. } | What::LockClosed { .. } => None,
                _ => continue,
            };
            let of_lock = waits.iter().filter(|((lock, _), _)| lock == name);
            for (_, wait) in of_lock {
                let ticket = wait.ticket.load(Ordering::SeqCst);
                if granted.is_none_or(|granted| ticket == granted || ticket == 0) {
                    wait.news.notify_one();
                }
            }
        }
    }

    /// Wakes everybody: something may have been missed.
    pub(crate) fn tell_all(&self) {
        self.lock().values().for_each(|wait| wait.news.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(LockName, RequestId), Arc<Wait>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A grant on its way to whoever asked. Dropped before it is handed over, it goes back.
struct Undelivered {
    answer: Acquired,
    orphan: Option<Orphan>,
}

/// What nobody may hold on to once its asker has gone: a place in the queue, or a grant.
struct Orphan {
    key: (LockName, RequestId),
    wait: Arc<Wait>,
    kept: bool,
    orphans: mpsc::UnboundedSender<Returned>,
}

impl Drop for Orphan {
    fn drop(&mut self) {
        // Whoever took over has the place, or is given the same grant.
        if !self.kept && !self.wait.taken_over.is_cancelled() {
            let (name, request_id) = self.key.clone();
            // The error says that the server has ended: time does the rest.
            let _ = self.orphans.send(Returned::Lock(name, request_id));
        }
    }
}

/// The place of a connection among the waits. Dropped, it is free.
struct Seat<'a> {
    app: &'a App,
    key: (LockName, RequestId),
    wait: Arc<Wait>,
    /// Gone once there is nothing to give back.
    orphan: Option<Orphan>,
}

impl<'a> Seat<'a> {
    fn take(app: &'a App, asked: &AcquireLock) -> Self {
        let key = (asked.name.clone(), asked.wish.request_id.clone());
        let wait = Arc::new(Wait::default());
        let before = app.lock_waits.lock().insert(key.clone(), Arc::clone(&wait));
        if let Some(before) = before {
            before.taken_over.cancel();
        }
        let orphan = Some(orphan(app, &key, &wait));
        Self { app, key, wait, orphan }
    }

    /// There is nothing to give back: it was handed over, or nothing was got.
    fn done(&mut self) {
        if let Some(mut orphan) = self.orphan.take() {
            orphan.kept = true;
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut waits = self.app.lock_waits.lock();
        if waits.get(&self.key).is_some_and(|wait| Arc::ptr_eq(wait, &self.wait)) {
            waits.remove(&self.key);
        }
    }
}

fn orphan(app: &App, key: &(LockName, RequestId), wait: &Arc<Wait>) -> Orphan {
    Orphan { key: key.clone(), wait: Arc::clone(wait), kept: false, orphans: app.orphans.clone() }
}

/// Acquires; while somebody else holds the lock, waits for at most the wish's time. Whoever hangs
/// up leaves the queue, and gives back what it was granted meanwhile.
pub(crate) async fn acquire(app: &App, mut asked: AcquireLock) -> Result<Holding, Rejection> {
    let mut seat = Seat::take(app, &asked);
    let over = app.store.now().plus_ms(asked.wish.wait_ms.min(limits::LOCK_WAIT_MS_MAX));
    loop {
        let came = attempt(app, &asked, &seat).await?;
        let (before, next_at) = match came.answer.clone() {
            Acquired::Granted(holding) => {
                seat.done();
                came.deliver();
                return Ok(holding);
            }
            Acquired::Held { holder, deadline } => {
                seat.done();
                came.deliver();
                return Err(Refusal::Held { holder, deadline }.into());
            }
            Acquired::Waiting { ticket, before, next_at } => {
                seat.wait.ticket.store(ticket.get(), Ordering::SeqCst);
                came.deliver();
                (before, next_at)
            }
        };
        let now = app.store.now();
        asked.wish.wait_ms = over.since_ms(now);
        // The first in the queue keeps the time of the holder's lease, the others their own.
        let next_at = if before == 0 { next_at.min(over) } else { over };
        let sleep_ms = next_at.since_ms(now).clamp(1, LOOK_AGAIN_MS);
        tokio::select! {
            biased;
            () = app.stopping.cancelled() => return Err(problems::stopping()),
            () = seat.wait.taken_over.cancelled() => return Err(problems::taken_over()),
            () = seat.wait.news.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(sleep_ms)) => {}
        }
    }
}

impl Undelivered {
    fn deliver(mut self) {
        if let Some(mut orphan) = self.orphan.take() {
            orphan.kept = true;
        }
    }
}

/// Asks the store once, to the end even if the asker goes meanwhile.
async fn attempt(app: &App, asked: &AcquireLock, seat: &Seat<'_>) -> Result<Undelivered, Failure> {
    let (reply, answered) = oneshot::channel();
    let orphan = orphan(app, &seat.key, &seat.wait);
    let (app, asked) = (app.clone(), asked.clone());
    tokio::spawn(async move {
        let came = app.store.run(asked).await;
        let came = came.map(|answer| Undelivered { answer, orphan: Some(orphan) });
        // Nobody there any more: what was granted goes back as it is dropped.
        let _ = reply.send(came);
    });
    let lost = |_| Failure::Unknown("the task that asked the store ended early".to_owned());
    answered.await.map_err(lost)?
}
