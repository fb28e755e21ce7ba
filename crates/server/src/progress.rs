//! How far renders are, as their workers told last. Hearsay: nothing is decided by it, and it is
//! kept in memory alone.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use palisade_api::wire::{JobView, ProgressView};
use palisade_core::{
    LeaseId, Timestamp,
    history::{Event, What},
    job::Job,
    lease::Pair,
};

/// Most renders that are remembered; more are not told of, which is no loss.
const RENDERS_MAX: usize = 100_000;

/// What workers told last, by the pair.
#[derive(Debug, Default)]
pub(crate) struct ProgressBook(Mutex<BTreeMap<Pair, ProgressView>>);

impl ProgressBook {
    /// A worker tells.
    pub(crate) fn told(&self, pair: Pair, progress: ProgressView) {
        let mut book = self.lock();
        if book.len() < RENDERS_MAX || book.contains_key(&pair) {
            book.insert(pair, progress);
        }
    }

    /// What was committed: attempts that were closed are forgotten.
    pub(crate) fn forget(&self, events: &[Event]) {
        let mut book = self.lock();
        if book.is_empty() {
            return;
        }
        for event in events {
            if let What::Closed { token, .. } = event.what {
                let of_token = |lease_id| Pair { token, lease_id: LeaseId(lease_id) };
                let mut closed = book.split_off(&of_token(0));
                let mut rest = closed.split_off(&of_token(u128::MAX));
                book.append(&mut rest);
            }
        }
    }

    /// What is shown of a job, with how far its open attempts are.
    pub(crate) fn view(&self, job: &Job, now: Timestamp) -> JobView {
        let mut view = JobView::of(job, now);
        let book = self.lock();
        for (attempt, shown) in job.attempts.iter().zip(&mut view.attempts) {
            if attempt.closed.is_none() {
                let pair = Pair { token: attempt.token, lease_id: attempt.lease_id };
                shown.progress = book.get(&pair).copied();
            }
        }
        view
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Pair, ProgressView>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
