//! The place of a connection among those who wait, and what goes back when the connection has gone.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use std::collections::BTreeMap;

use palisade_core::{LeaseId, LockName, RequestId, lease::Pair, lock::Acquired};
use palisade_store::command::{AcquireLock, LeaveLock};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{app::App, dispatch::Returned};

use super::{Granted, Handed, NEWS_MS, Wait};

/// Takes an entry out if it is this very wait's: another may sit there by now.
fn take_out<K: Ord>(seats: &mut BTreeMap<K, Arc<Wait>>, key: &K, wait: &Arc<Wait>) {
    if seats.get(key).is_some_and(|there| Arc::ptr_eq(there, wait)) {
        seats.remove(key);
    }
}

/// A grant on its way to whoever asked. Dropped before it is handed over, it goes back.
pub(super) struct Undelivered {
    pub(super) answer: Acquired,
    pub(super) orphan: Option<Orphan>,
}

/// What nobody may hold on to once its asker has gone: a place in the queue, or a grant.
pub(super) struct Orphan {
    gone: LeaveLock,
    wait: Arc<Wait>,
    kept: bool,
    stopping: CancellationToken,
    orphans: mpsc::UnboundedSender<Returned>,
}

impl Drop for Orphan {
    fn drop(&mut self) {
        // Whoever took over has the place, or is given the same grant. Whose server stops asks
        // another for it.
        let kept = self.kept || self.wait.taken_over.is_cancelled();
        if !kept && !self.stopping.is_cancelled() {
            // The error says that the server has ended: time does the rest.
            let _ = self.orphans.send(Returned::Lock(self.gone.clone()));
        }
    }
}

/// The place of a connection among the waits. Dropped, it is free.
pub(super) struct Seat<'a> {
    app: &'a App,
    pub(super) key: (LockName, RequestId),
    pub(super) wait: Arc<Wait>,
    /// Gone once there is nothing to give back.
    orphan: Option<Orphan>,
}

impl<'a> Seat<'a> {
    pub(super) fn take(app: &'a App, asked: &AcquireLock) -> Self {
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
        let orphan = Some(orphan(app, asked, &wait));
        Self { app, key, wait, orphan }
    }

    /// The store has told its place in the queue.
    pub(super) fn place(&self, ticket: u64) {
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

    /// What it was granted, if the news of that is fresh.
    pub(super) fn handed(&self, lease_id: LeaseId) -> Option<Handed> {
        let news = self.wait.granted.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Granted { token, ttl_ms, at } = news?;
        let fresh = self.app.store.now().since_ms(at) <= NEWS_MS;
        let pair = Pair { token, lease_id };
        fresh.then_some(Handed { pair, ttl_ms, granted_at: at })
    }

    /// There is nothing to give back: it was handed over, or nothing was got.
    pub(super) fn done(&mut self) {
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

pub(super) fn orphan(app: &App, asked: &AcquireLock, wait: &Arc<Wait>) -> Orphan {
    let AcquireLock { name, wish } = asked;
    let (name, request_id) = (name.clone(), wish.request_id.clone());
    Orphan {
        gone: LeaveLock { name, request_id, call: wish.lease_id },
        wait: Arc::clone(wait),
        kept: false,
        stopping: app.stopping.clone(),
        orphans: app.orphans.clone(),
    }
}

impl Undelivered {
    pub(super) fn deliver(mut self) {
        if let Some(mut orphan) = self.orphan.take() {
            orphan.kept = true;
        }
    }
}
