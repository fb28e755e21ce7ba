//! Notifications on their way: leased from the store, signed, sent, settled.
//!
//! What is sent is what the row says. A delivery that is lost with this process, or paused past
//! its lease, is made again under the same id.

mod addresses;
mod deliver;
mod progress;
mod send;
mod sign;

#[cfg(test)]
mod tests;

pub use addresses::{AllowedAddresses, Network, NotANetwork};

pub(crate) use addresses::literal;
pub(crate) use deliver::deliver;
pub(crate) use progress::tell_progress;
pub(crate) use sign::shown;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use palisade_core::{
    JobId,
    history::{Event, Joined, What},
    lease::Pair,
    outbox::{Endpoint, EventType, Progress},
};
use tokio::sync::Notify;

/// Most renders whose progress waits to be told; more are not told of, which is no loss.
const RENDERS_MAX: usize = 10_000;

/// What wakes the deliverer, and whose progress is to be told.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    wake: Notify,
    /// Whether anybody has wanted to be told since the start. Never unset: a doubt costs a look.
    wanted: AtomicBool,
    /// The same, of progress.
    progress_wanted: AtomicBool,
    /// The last that each render's worker told since it was passed on.
    came: Mutex<BTreeMap<Pair, (JobId, Progress)>>,
}

impl Webhooks {
    /// What was committed: looks, if some of it has to be told.
    pub(crate) fn tell(&self, events: &[Event]) {
        if !self.wanted.load(Ordering::SeqCst) {
            return;
        }
        let is_news = |event: &Event| match &event.what {
            What::Moved { state, .. } => !state.is_live(),
            What::Submitted { how, .. } => *how == Joined::Cached,
            What::NotificationAgain(_) => true,
            _ => false,
        };
        if events.iter().any(is_news) {
            self.wake.notify_one();
        }
    }

    /// Looks, whatever was committed.
    pub(crate) fn look(&self) {
        self.wake.notify_one();
    }

    /// Somebody wants to be told.
    pub(crate) fn learn(&self, endpoint: &Endpoint) {
        self.wanted.store(true, Ordering::SeqCst);
        if endpoint.events.contains(&EventType::Progress) {
            self.progress_wanted.store(true, Ordering::SeqCst);
        }
    }

    /// A worker told how far its render is.
    pub(crate) fn came(&self, job: JobId, pair: Pair, progress: Progress) {
        if !self.progress_wanted.load(Ordering::SeqCst) {
            return;
        }
        let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        if came.len() < RENDERS_MAX || came.contains_key(&pair) {
            came.insert(pair, (job, progress));
        }
    }

    /// What has come since the last call, the last of each render.
    fn take_came(&self) -> Vec<(JobId, Pair, Progress)> {
        let came = std::mem::take(&mut *self.came.lock().unwrap_or_else(PoisonError::into_inner));
        came.into_iter().map(|(pair, (job, progress))| (job, pair, progress)).collect()
    }
}
