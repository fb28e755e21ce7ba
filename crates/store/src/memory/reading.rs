//! Answering queries.

use std::convert::Infallible;

use palisade_core::{
    Digest, JobId, Number,
    blob::Blob,
    history::Event,
    job::{Job, JobState},
};

use crate::{
    lease_book::Held,
    query::{JobFilter, JournalSpan, LeaseView, Query, View, resolve},
};

use super::MemoryEngine;

impl MemoryEngine {
    /// Answers a query.
    pub fn query(&self, query: &Query) -> View {
        match query {
            Query::Job(id) => View::Job(self.read_job(*id).map(Box::new)),
            Query::Jobs(filter) => View::Jobs(self.read_jobs(filter)),
            Query::History(id) => {
                View::History(self.read_journal(0, usize::MAX, |e| e.job() == Some(*id)))
            }
            Query::Events { after, limit } => {
                View::Events(self.read_journal(*after, *limit, |_| true))
            }
            Query::JournalSpan => {
                View::JournalSpan(JournalSpan { pruned: self.pruned, next: self.position + 1 })
            }
            Query::Blob(digest) => View::Blob(self.newest_blob(*digest)),
            Query::Leases => View::Leases(self.book.all().map(lease_view).collect()),
            Query::Lock(name) => View::Lock(self.read_lock(name).map(Box::new)),
            Query::Locks(page) => {
                let shown = self.locks.keys().filter(|name| page.shows(name.as_str()));
                let locks = shown.take(page.limit).filter_map(|name| self.read_lock(name));
                View::Locks(locks.collect())
            }
            Query::Object(key) => View::Object(self.objects.get(key).cloned().map(Box::new)),
            Query::Resolve(key) => {
                let manifest = |id| {
                    let job = self.jobs.get(&id);
                    Ok(job.and_then(|job| Some(job.completion.as_ref()?.manifest.clone())))
                };
                let object = |key: &_| Ok(self.objects.get(key).cloned());
                let Ok::<_, Infallible>(resolved) = resolve(key, object, manifest);
                View::Resolve(resolved)
            }
            Query::Objects(page) => {
                let shown = self
                    .objects
                    .values()
                    .filter(|object| object.is_readable() && page.shows(object.key.as_str()));
                View::Objects(shown.take(page.limit).cloned().collect())
            }
            Query::Unkept(scan) => {
                let (blobs, next) = self.read_unkept(scan);
                View::Unkept(blobs, next)
            }
            Query::Cases(asked) => View::Cases(self.read_cases(asked)),
            Query::PastJobs { scan, until } => {
                let (jobs, next) = self.read_past_jobs(scan, *until);
                View::PastJobs(jobs, next)
            }
            Query::Endpoints => View::Endpoints(self.endpoints.values().cloned().collect()),
            Query::Deliveries(filter) => {
                let shown = self.outbox.values().rev().filter(|row| filter.shows(row));
                View::Deliveries(shown.take(filter.limit).cloned().collect())
            }
            Query::Counts => {
                View::Counts(JobState::ALL.map(|state| (state, self.count(state))).into())
            }
        }
    }

    pub(super) fn newest_blob(&self, digest: Digest) -> Option<Blob> {
        let generations = (digest, Number::ZERO)..=(digest, Number::MAX);
        self.blobs.range(generations).next_back().map(|(_, blob)| *blob)
    }

    fn read_job(&self, id: JobId) -> Option<Job> {
        let mut job = self.jobs.get(&id)?.clone();
        self.book.overlay(&mut job);
        Some(job)
    }

    fn read_jobs(&self, filter: &JobFilter) -> Vec<Job> {
        let shown = self.jobs.values().rev().filter(|job| {
            filter.state.is_none_or(|state| job.state == state)
                && filter.recipe.as_ref().is_none_or(|recipe| job.spec.recipe == *recipe)
                && filter.before.is_none_or(|before| job.id < before)
        });
        let mut jobs: Vec<_> = shown.take(filter.limit).cloned().collect();
        for job in &mut jobs {
            self.book.overlay(job);
        }
        jobs
    }

    fn read_journal(
        &self,
        after: u64,
        limit: usize,
        shown: impl Fn(&Event) -> bool,
    ) -> Vec<(u64, Event)> {
        // The first entry's position is 1, so that "after 0" is everything.
        self.journal
            .range(after.saturating_add(1)..)
            .filter(|(_, event)| shown(event))
            .take(limit)
            .map(|(position, event)| (*position, event.clone()))
            .collect()
    }

    fn count(&self, state: JobState) -> u64 {
        self.jobs.values().filter(|job| job.state == state).count() as u64
    }
}

/// What a listing shows of a held lease.
pub(crate) fn lease_view(held: &Held) -> LeaseView {
    LeaseView {
        token: held.token,
        job: held.job,
        worker: held.worker.clone(),
        session: held.session.clone(),
        granted_at: held.granted_at,
        lease: held.lease,
    }
}
