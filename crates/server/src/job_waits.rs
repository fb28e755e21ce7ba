//! Those who wait for a job to be over, woken by the journal.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use palisade_core::{
    JobId,
    history::{Event, What},
};
use tokio::sync::Notify;

/// The waits of this server.
#[derive(Debug, Default)]
pub(crate) struct JobWaits {
    waits: Mutex<BTreeMap<JobId, Arc<Notify>>>,
}

/// One wait. Dropped, it is over.
#[derive(Debug)]
pub(crate) struct JobWait<'a> {
    waits: &'a JobWaits,
    job: JobId,
    notify: Option<Arc<Notify>>,
}

impl JobWaits {
    /// Begins to wait. What happens from now on is not missed.
    pub(crate) fn begin(&self, job: JobId) -> JobWait<'_> {
        let notify = Arc::clone(self.lock().entry(job).or_default());
        JobWait { waits: self, job, notify: Some(notify) }
    }

    /// Wakes those whose job has moved out of its life, or was published.
    pub(crate) fn tell(&self, events: &[Event]) {
        let waits = self.lock();
        for event in events {
            let over = match &event.what {
                What::Moved { state, .. } => !state.is_live(),
                What::Published { .. } | What::NotPublished { .. } | What::Withdrawn { .. } => true,
                _ => false,
            };
            if over && let Some(notify) = event.job().and_then(|job| waits.get(&job)) {
                notify.notify_waiters();
            }
        }
    }

    /// Wakes everybody: something may have been missed.
    pub(crate) fn tell_all(&self) {
        self.lock().values().for_each(|notify| notify.notify_waiters());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Arc<Notify>>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobWait<'_> {
    /// What wakes it.
    pub(crate) fn notify(&self) -> &Notify {
        self.notify.as_ref().expect("taken by drop alone")
    }
}

impl Drop for JobWait<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.lock();
        self.notify = None;
        if waits.get(&self.job).is_some_and(|notify| Arc::strong_count(notify) == 1) {
            waits.remove(&self.job);
        }
    }
}
