//! The records as the real operations see them.

use std::rc::Rc;

use palisade_core::{
    Digest, JobId, Number, RequestId, SessionId, Tenant, Timestamp,
    blob::{Blob, BlobState},
    history::Event,
    job::{Job, JobState},
    spec::JobKey,
};
use palisade_store::{
    command::Capability,
    fault::Fault,
    tables::{HeldLeases, Keeper, Recorded, Scope, Tables},
};

use crate::sabotage::{Sabotage, hooks};

use super::CrashEngine;

impl CrashEngine {
    fn queued<'a>(&'a self, fits: &'a [Capability]) -> impl Iterator<Item = &'a Rc<Job>> {
        self.live.jobs.values().filter(move |job| {
            job.state == JobState::Queued
                && fits.iter().any(|capability| {
                    capability.recipe == job.spec.recipe
                        && capability.definition == job.spec.definition
                })
        })
    }

    /// Before every write.
    pub(super) fn room(&mut self) -> Result<(), Fault> {
        self.dirty = true;
        if self.disk_full { Err(Fault::Full("the lab says so".into())) } else { Ok(()) }
    }
}

impl Tables for CrashEngine {
    fn draw(&mut self) -> Result<Number, Fault> {
        Ok(self.draw_number())
    }

    fn job(&mut self, id: JobId) -> Result<Option<Job>, Fault> {
        Ok(self.job_now(id))
    }

    fn put_job(&mut self, before: Option<&Job>, job: &Job) -> Result<(), Fault> {
        self.room()?;
        let mut job = job.clone();
        hooks::on_put(self.broken, before, &mut job);
        self.book.follow(&job);
        if self.broken == Some(Sabotage::FirstRenewalVolatile) {
            hooks::forget_renewals(self.live.jobs.get(&job.id), &mut job);
        }
        self.live.jobs.insert(job.id, Rc::new(job));
        Ok(())
    }

    fn live_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        if self.broken == Some(Sabotage::TwoLiveJobs) {
            return Ok(None);
        }
        Ok(self.live.newest(tenant, key, JobState::is_live))
    }

    fn complete_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        Ok(self.live.newest(tenant, key, |state| state == JobState::Complete))
    }

    fn newest_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        if self.broken == Some(Sabotage::RetryPastNewer) {
            return Ok(None);
        }
        Ok(self.live.newest(tenant, key, |_| true))
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
        if self.broken == Some(Sabotage::ClaimsForgotten) {
            return Ok(Vec::new());
        }
        let attempts = self.live.jobs.values().flat_map(|job| {
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
        if self.broken == Some(Sabotage::RequestsForgotten) {
            return Ok(None);
        }
        let recorded = self.live.requests.get(&(scope.clone(), id.clone()));
        Ok(recorded.map(|recorded| Recorded::clone(recorded)))
    }

    fn record(&mut self, scope: &Scope, id: &RequestId, answer: &Recorded) -> Result<(), Fault> {
        self.room()?;
        self.live.requests.insert((scope.clone(), id.clone()), Rc::new(answer.clone()));
        Ok(())
    }

    fn blob(&mut self, digest: Digest) -> Result<Option<Blob>, Fault> {
        let newest = self.live.newest_blob(digest);
        if self.broken == Some(Sabotage::MissingBlobsAccepted) {
            return Ok(newest.map(|blob| Blob { state: BlobState::Present, ..blob }));
        }
        Ok(newest)
    }

    fn put_blob(&mut self, blob: &Blob) -> Result<(), Fault> {
        self.room()?;
        self.live.blobs.insert((blob.digest, blob.generation), *blob);
        Ok(())
    }

    fn keep_blob(
        &mut self,
        digest: Digest,
        generation: Number,
        keeper: &Keeper,
    ) -> Result<(), Fault> {
        self.room()?;
        self.live.keepers.insert((keeper.clone(), digest, generation));
        Ok(())
    }

    fn drop_keeper(&mut self, keeper: &Keeper) -> Result<(), Fault> {
        self.dirty = true;
        if self.live.keepers.iter().any(|(kept_by, _, _)| kept_by == keeper) {
            self.live.keepers.retain(|(kept_by, _, _)| kept_by != keeper);
        }
        Ok(())
    }

    fn append(&mut self, events: &[Event]) -> Result<(), Fault> {
        self.room()?;
        for event in events {
            self.journal(event.clone());
        }
        Ok(())
    }

    fn record_clock(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.dirty = true;
        self.live.clock = now;
        Ok(())
    }
}
