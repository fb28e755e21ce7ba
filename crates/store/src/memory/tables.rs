//! The records as the operations see them.

use palisade_core::{
    Digest, JobId, Number, RequestId, SessionId, Tenant, Timestamp,
    blob::Blob,
    history::Event,
    job::{Job, JobState},
    spec::JobKey,
};

use crate::{
    command::Capability,
    fault::Fault,
    tables::{HeldLeases, Keeper, Recorded, Scope, Tables},
};

use super::MemoryEngine;

impl MemoryEngine {
    fn newest(
        &self,
        tenant: &Tenant,
        key: JobKey,
        fits: impl Fn(JobState) -> bool,
    ) -> Option<JobId> {
        self.jobs
            .values()
            .rev()
            .find(|job| job.key == key && job.tenant == *tenant && fits(job.state))
            .map(|job| job.id)
    }

    fn queued<'a>(&'a self, fits: &'a [Capability]) -> impl Iterator<Item = &'a Job> {
        self.jobs.values().filter(move |job| {
            job.state == JobState::Queued
                && fits.iter().any(|capability| {
                    capability.recipe == job.spec.recipe
                        && capability.definition == job.spec.definition
                })
        })
    }
}

impl Tables for MemoryEngine {
    fn draw(&mut self) -> Result<Number, Fault> {
        self.wrote = true;
        self.counter.0 = self.given.pop_front().unwrap_or_else(|| self.counter.0.next());
        Ok(self.counter.0)
    }

    fn job(&mut self, id: JobId) -> Result<Option<Job>, Fault> {
        let mut job = self.jobs.get(&id).cloned();
        if let Some(job) = &mut job {
            self.book.overlay(job);
        }
        Ok(job)
    }

    fn put_job(&mut self, before: Option<&Job>, job: &Job) -> Result<(), Fault> {
        self.wrote = true;
        self.book.follow(job);
        let mut stored = job.clone();
        let on_record = self.jobs.get(&job.id);
        // A renewal that lives in memory alone stays there, also when the record is written for
        // another reason: a restart forgets it.
        for attempt in stored.attempts.iter_mut().filter(|attempt| attempt.closed.is_none()) {
            let as_read = before.and_then(|before| before.attempt(attempt.token));
            if let Some(known) = on_record.and_then(|job| job.attempt(attempt.token))
                && as_read.is_some_and(|as_read| as_read.lease == attempt.lease)
            {
                attempt.lease = known.lease;
            }
        }
        self.jobs.insert(job.id, stored);
        Ok(())
    }

    fn live_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        Ok(self.newest(tenant, key, JobState::is_live))
    }

    fn complete_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        Ok(self.newest(tenant, key, |state| state == JobState::Complete))
    }

    fn newest_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        Ok(self.newest(tenant, key, |_| true))
    }

    fn due(
        &mut self,
        fits: &[Capability],
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<JobId>, Fault> {
        let mut due: Vec<_> = self.queued(fits).filter(|job| job.run_at <= now).collect();
        due.sort_by_key(|job| (std::cmp::Reverse(job.priority), job.run_at, job.id));
        Ok(due.into_iter().map(|job| job.id).take(limit).collect())
    }

    fn next_due(
        &mut self,
        fits: &[Capability],
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Fault> {
        Ok(self.queued(fits).map(|job| job.run_at).filter(|at| *at > now).min())
    }

    fn granted(
        &mut self,
        session: &SessionId,
        claim: &RequestId,
    ) -> Result<Vec<(JobId, Number)>, Fault> {
        let attempts = self.jobs.values().flat_map(|job| {
            let of_claim = job.attempts.iter();
            of_claim
                .filter(|attempt| attempt.session == *session && attempt.claim == *claim)
                .map(|attempt| (job.id, attempt.token))
        });
        let mut granted: Vec<_> = attempts.collect();
        granted.sort_by_key(|(_, token)| *token);
        Ok(granted)
    }

    fn held(&mut self) -> &mut dyn HeldLeases {
        &mut self.book
    }

    fn recorded(&mut self, scope: &Scope, id: &RequestId) -> Result<Option<Recorded>, Fault> {
        let recorded = self.requests.get(&(scope.clone(), id.clone()));
        Ok(recorded.map(|(_, answer)| answer.clone()))
    }

    fn record(&mut self, scope: &Scope, id: &RequestId, answer: &Recorded) -> Result<(), Fault> {
        self.wrote = true;
        self.requests.insert((scope.clone(), id.clone()), (self.now, answer.clone()));
        Ok(())
    }

    fn blob(&mut self, digest: Digest) -> Result<Option<Blob>, Fault> {
        Ok(self.newest_blob(digest))
    }

    fn put_blob(&mut self, blob: &Blob) -> Result<(), Fault> {
        self.wrote = true;
        self.blobs.insert((blob.digest, blob.generation), *blob);
        Ok(())
    }

    fn keep_blob(
        &mut self,
        digest: Digest,
        generation: Number,
        keeper: &Keeper,
    ) -> Result<(), Fault> {
        self.wrote = true;
        self.keepers.insert((keeper.clone(), digest, generation));
        Ok(())
    }

    fn drop_keeper(&mut self, keeper: &Keeper) -> Result<(), Fault> {
        let before = self.keepers.len();
        self.keepers.retain(|(kept_by, _, _)| kept_by != keeper);
        self.wrote |= self.keepers.len() < before;
        Ok(())
    }

    fn append(&mut self, events: &[Event]) -> Result<(), Fault> {
        self.wrote = true;
        for event in events {
            self.position += 1;
            self.journal.insert(self.position, event.clone());
        }
        Ok(())
    }

    fn record_clock(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.wrote = true;
        self.clock = self.clock.max(now);
        Ok(())
    }
}
