//! Those who wait for a lock, handed it in memory at the commit that grants it to them: the news of
//! that commit has all that the store would answer. News that is missed is only a delay, for whoever
//! waits also looks for itself.

mod seat;

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
    LockName, Number, RequestId, Timestamp,
    history::{Event, Subject, What},
    lease::Pair,
    limits,
    lock::Acquired,
    refusal::Refusal,
    time::granted_span_ms,
};
use palisade_store::{Failure, StoreExt, command::AcquireLock};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    app::App,
    problems::{self, Rejection},
};

use seat::{Seat, Undelivered, orphan};

/// How long a waiter counts as being there without a word of it, in ms.
pub(crate) const ALIVE_MS: u64 = 30_000;
/// How often it says so, in ms.
const LOOK_AGAIN_MS: u64 = 10_000;
/// A grant whose news is older than this is asked for again, in ms: whoever is handed it late is
/// given its whole ttl, and is told if it has gone to another.
const NEWS_MS: u64 = 500;

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
    /// What it was granted, as the news of the commit told.
    granted: Mutex<Option<Granted>>,
    /// There may be something for it: the grant, or something to ask the store about.
    news: Notify,
    /// It is the first now, and the holder's lease ends after so many ms unless renewed: it keeps
    /// the time of it.
    holder_ttl_ms: AtomicU64,
    first: Notify,
    /// Another connection asked for the same: of two, the later one counts.
    taken_over: CancellationToken,
}

/// A grant, as the journal tells it: the lease id is known to who waits for it alone.
#[derive(Debug, Clone, Copy)]
struct Granted {
    token: Number,
    ttl_ms: u64,
    at: Timestamp,
}

/// A lock that was handed over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handed {
    pub(crate) pair: Pair,
    pub(crate) ttl_ms: u64,
    pub(crate) granted_at: Timestamp,
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
                What::LockGranted { token, ticket, ttl_ms, .. } => {
                    queue.granted(ticket.get(), Granted { token, ttl_ms, at: event.at });
                }
                What::LockLeft { ticket, .. } => queue.left(ticket.get()),
                // Whoever waited is granted it in the same change.
                _ => {}
            }
        }
    }

    /// How many have their place in a queue, and are woken by the news of their grant.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().values().map(|queue| queue.placed.len()).sum()
    }

    /// How many requests wait here, or are being answered.
    pub(crate) fn open(&self) -> usize {
        self.lock().values().map(|queue| queue.seats.len()).sum()
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
    fn granted(&self, ticket: u64, granted: Granted) {
        if let Some(wait) = self.placed.get(&ticket) {
            *wait.granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(granted);
            wait.news.notify_one();
        }
        let after = (Bound::Excluded(ticket), Bound::Unbounded);
        if let Some((_, next)) = self.placed.range(after).next() {
            next.holder_ttl_ms.store(granted_span_ms(granted.ttl_ms), Ordering::SeqCst);
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

/// Acquires; while somebody else holds the lock, waits for at most the wish's time. Whoever hangs
/// up leaves the queue, and gives back what it was granted meanwhile.
pub(crate) async fn acquire(app: &App, mut asked: AcquireLock) -> Result<Handed, Rejection> {
    let mut seat = Seat::take(app, &asked);
    let over = app.store.now().plus_ms(asked.wish.wait_ms.min(limits::LOCK_WAIT_MS_MAX));
    loop {
        let came = attempt(app, &asked, &seat).await?;
        let (lease_id, before, next_at) = match came.answer.clone() {
            Acquired::Granted(held) => {
                seat.done();
                came.deliver();
                let pair = Pair { token: held.token, lease_id: held.lease_id };
                let (ttl_ms, granted_at) = (held.lease.ttl_ms, held.granted_at);
                return Ok(Handed { pair, ttl_ms, granted_at });
            }
            Acquired::Held { holder, deadline } => {
                seat.done();
                came.deliver();
                return Err(Refusal::Held { holder, deadline }.into());
            }
            Acquired::Waiting { ticket, lease_id, before, next_at } => {
                seat.place(ticket.get());
                came.deliver();
                (lease_id, before, next_at)
            }
        };
        let now = app.store.now();
        asked.wish.wait_ms = over.since_ms(now);
        // The first in the queue keeps the time of the holder's lease, the others their own.
        let next_at = if before == 0 { next_at.min(over) } else { over };
        rest(app, &seat.wait, next_at, over).await?;
        if let Some(handed) = seat.handed(lease_id) {
            seat.done();
            return Ok(handed);
        }
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

/// Asks the store once, to the end even if the asker goes meanwhile.
async fn attempt(app: &App, asked: &AcquireLock, seat: &Seat<'_>) -> Result<Undelivered, Failure> {
    let (reply, answered) = oneshot::channel();
    let orphan = orphan(app, asked, &seat.wait);
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
