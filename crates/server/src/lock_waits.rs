//! Those who wait for a lock, woken in memory at the commit that grants it to them.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use palisade_core::{
    LockName, RequestId, Timestamp,
    history::{Event, Subject, What},
    limits,
    lock::{Acquired, Holding},
    refusal::Refusal,
    time::granted_span_ms,
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

/// The waits of this server, lock by lock.
#[derive(Debug, Default)]
pub(crate) struct LockWaits(Mutex<BTreeMap<LockName, Queue>>);

/// Those who wait for one lock at this server.
///
/// Invariant: every seat is either among the placed, under its ticket, or among the others.
#[derive(Debug, Default)]
struct Queue {
    seats: BTreeMap<RequestId, Arc<Wait>>,
    placed: BTreeMap<u64, Arc<Wait>>,
    /// Those whose place the store has not told yet.
    unplaced: BTreeMap<RequestId, Arc<Wait>>,
}

/// The connection on which a wish is answered.
#[derive(Debug, Default)]
struct Wait {
    /// Its place in the queue; zero until it is known.
    ticket: AtomicU64,
    /// There may be something for it: it asks the store.
    news: Notify,
    /// It is the first now, and the holder's lease ends after so many ms unless renewed: it keeps
    /// the time of it.
    holder_ttl_ms: AtomicU64,
    first: Notify,
    /// Another connection asked for the same: of two, the later one counts.
    taken_over: CancellationToken,
}

impl LockWaits {
    /// What was committed: wakes who was granted a lock, and tells the first who wait for it now.
    /// However many wait, two are touched.
    pub(crate) fn tell(&self, events: &[Event]) {
        let waits = self.lock();
        if waits.is_empty() {
            return;
        }
        for event in events {
            let Subject::Lock(name) = &event.subject else { continue };
            let Some(queue) = waits.get(name) else { continue };
            match event.what {
                What::LockGranted { ticket, ttl_ms, .. } => queue.granted(ticket.get(), ttl_ms),
                What::LockLeft { ticket, .. } => queue.left(ticket.get()),
                // Whoever waited is granted it in the same change.
                _ => {}
            }
        }
    }

    /// Wakes everybody: something may have been missed.
    pub(crate) fn tell_all(&self) {
        let waits = self.lock();
        waits
            .values()
            .flat_map(|queue| queue.seats.values())
            .for_each(|wait| wait.news.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LockName, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn granted(&self, ticket: u64, ttl_ms: u64) {
        if let Some(wait) = self.placed.get(&ticket) {
            wait.news.notify_one();
        }
        let after = (Bound::Excluded(ticket), Bound::Unbounded);
        if let Some((_, next)) = self.placed.range(after).next() {
            next.holder_ttl_ms.store(granted_span_ms(ttl_ms), Ordering::SeqCst);
            next.first.notify_one();
        }
        self.unplaced.values().for_each(|wait| wait.news.notify_one());
    }

    fn left(&self, ticket: u64) {
        if let Some(wait) = self.placed.get(&ticket) {
            wait.news.notify_one();
        }
        // Perhaps it was the first, and somebody else must keep the time of the holder's lease.
        if let Some((_, first)) = self.placed.iter().find(|(place, _)| **place != ticket) {
            first.news.notify_one();
        }
    }

    fn is_empty(&self) -> bool {
        self.seats.is_empty() && self.placed.is_empty() && self.unplaced.is_empty()
    }
}

/// Takes an entry out if it is this very wait's: another may sit there by now.
fn take_out<K: Ord>(seats: &mut BTreeMap<K, Arc<Wait>>, key: &K, wait: &Arc<Wait>) {
    if seats.get(key).is_some_and(|there| Arc::ptr_eq(there, wait)) {
        seats.remove(key);
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
        let mut waits = app.lock_waits.lock();
        let queue = waits.entry(key.0.clone()).or_default();
        queue.unplaced.insert(key.1.clone(), Arc::clone(&wait));
        let before = queue.seats.insert(key.1.clone(), Arc::clone(&wait));
        drop(waits);
        if let Some(before) = before {
            before.taken_over.cancel();
        }
        let orphan = Some(orphan(app, &key, &wait));
        Self { app, key, wait, orphan }
    }

    /// The store has told its place in the queue.
    fn place(&self, ticket: u64) {
        let before = self.wait.ticket.swap(ticket, Ordering::SeqCst);
        if before == ticket {
            return;
        }
        let mut waits = self.app.lock_waits.lock();
        let Some(queue) = waits.get_mut(&self.key.0) else { return };
        take_out(&mut queue.unplaced, &self.key.1, &self.wait);
        take_out(&mut queue.placed, &before, &self.wait);
        queue.placed.insert(ticket, Arc::clone(&self.wait));
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
        let Some(queue) = waits.get_mut(&self.key.0) else { return };
        take_out(&mut queue.seats, &self.key.1, &self.wait);
        take_out(&mut queue.unplaced, &self.key.1, &self.wait);
        take_out(&mut queue.placed, &self.wait.ticket.load(Ordering::SeqCst), &self.wait);
        if queue.is_empty() {
            waits.remove(&self.key.0);
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
                seat.place(ticket.get());
                came.deliver();
                (before, next_at)
            }
        };
        let now = app.store.now();
        asked.wish.wait_ms = over.since_ms(now);
        // The first in the queue keeps the time of the holder's lease, the others their own.
        let next_at = if before == 0 { next_at.min(over) } else { over };
        rest(app, &seat.wait, next_at, over).await?;
    }
}

/// Waits until it is time to ask the store again.
async fn rest(
    app: &App,
    wait: &Wait,
    mut next_at: Timestamp,
    over: Timestamp,
) -> Result<(), Rejection> {
    loop {
        let sleep_ms = next_at.since_ms(app.store.now()).clamp(1, LOOK_AGAIN_MS);
        tokio::select! {
            biased;
            () = app.stopping.cancelled() => return Err(problems::stopping()),
            () = wait.taken_over.cancelled() => return Err(problems::taken_over()),
            () = wait.news.notified() => return Ok(()),
            () = wait.first.notified() => {
                let ttl_ms = wait.holder_ttl_ms.load(Ordering::SeqCst);
                next_at = app.store.now().plus_ms(ttl_ms).min(over);
            }
            () = tokio::time::sleep(Duration::from_millis(sleep_ms)) => return Ok(()),
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
