//! The records as the operations see them.

use std::collections::BTreeSet;

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
    tables::{Ahead, HeldLeases, Keeper, Recorded, Scope, Tables},
};

use super::{Keeping, Overlay, OwnKey, Place, Wants, Which, place_of, queue::Look};

/// After how long to look again for a job that another transaction had locked, in ms.
const LOOK_AGAIN_MS: u64 = 50;

impl Overlay {
    /// The newest of a key's jobs that `fits`: as the database says, or as changed since.
    fn by_key(
        &self,
        which: Which,
        own: &OwnKey,
        fits: impl Fn(JobState) -> bool,
    ) -> Result<Option<JobId>, Fault> {
        let Some(fetched) = self.keys.get(&(which, own.clone())) else {
            return Err(self.miss(|wants| wants.keys.insert((which, own.clone()))));
        };
        let here = self.by_key.get(own).into_iter().flatten().copied();
        let stands = |id: &JobId| self.jobs.present(id).is_some_and(|job| fits(job.state));
        Ok(here.chain(*fetched).filter(stands).max())
    }

    /// Remembers what each claim was granted, and whose each token is.
    fn note_grants(&mut self, before: Option<&Job>, job: &Job) {
        let known = before.map_or(0, |before| before.attempts.len());
        for attempt in &job.attempts[known..] {
            let claim = (attempt.session.clone(), attempt.claim.clone());
            let mut grants = self.claims.present(&claim).cloned().unwrap_or_default();
            grants.push((job.id, attempt.token));
            self.claims.put(claim, grants);
            self.tokens.put(attempt.token, job.id);
        }
    }

    fn stands_due(&self, place: &Place, now: Timestamp) -> bool {
        let (_, run_at, id) = place;
        let stands = |job: &Job| job.state == JobState::Queued && place_of(job) == *place;
        *run_at <= now && self.jobs.present(id).is_some_and(stands)
    }
}

impl Tables for Overlay {
    fn draw(&mut self) -> Result<Number, Fault> {
        let Some(number) = self.numbers.get(self.drawn).copied() else {
            // Each of the commands that come after it may need as many as a job that ends: one for
            // what is said of it, and one for each endpoint that is told. And one command may need
            // any number, for a job that hundreds wished for: so at least as many again.
            self.short += 1;
            let more = self.short * (2 + self.outbox.endpoints_known());
            let more = self.drawn + more.max(self.drawn);
            return Err(self.miss(|wants| wants.numbers = wants.numbers.max(more)));
        };
        self.drawn += 1;
        // Every fence that this number could be compared with was read under a lock before the
        // number was drawn, and whoever raised it had drawn before and committed. So a lower number
        // means that the counter went backwards: a restored copy that nobody noticed.
        if let Some(fence) = self.fence.filter(|fence| number < *fence) {
            return Err(Fault::Corrupt {
                record: "the counter".to_owned(),
                what: format!(
                    "it stands at {number}, below the fence {fence}: raise it with `palisade \
                     admin tokens raise`"
                ),
            });
        }
        Ok(number)
    }

    fn is_far(&self) -> bool {
        true
    }

    fn read_ahead(&mut self, ahead: Ahead) -> Result<(), Fault> {
        let Ahead { mut jobs, mut objects, mut blobs } = ahead;
        jobs.retain(|id| self.jobs.get(id).is_none());
        objects.retain(|key| self.objects.get(key).is_none());
        blobs.retain(|digest| self.newest_blobs.get(digest).is_none());
        if jobs.is_empty() && objects.is_empty() && blobs.is_empty() {
            return Ok(());
        }
        Err(self.miss(|wants| {
            wants.jobs.extend(jobs.iter().copied());
            wants.job_leases.extend(jobs);
            wants.objects.extend(objects);
            wants.blobs.extend(blobs);
        }))
    }

    fn job(&mut self, id: JobId) -> Result<Option<Job>, Fault> {
        let Some(job) = self.jobs.get(&id) else {
            return Err(self.miss(|wants| {
                wants.jobs.insert(id);
                wants.job_leases.insert(id);
            }));
        };
        let Some(job) = job else { return Ok(None) };
        if job.has_open_attempt() && !self.whole.contains(&id) {
            return Err(self.miss(|wants| wants.job_leases.insert(id)));
        }
        let mut job = job.clone();
        self.book.overlay(&mut job);
        Ok(Some(job))
    }

    fn put_job(&mut self, before: Option<&Job>, job: &Job) -> Result<(), Fault> {
        self.book.follow(job);
        self.whole.insert(job.id);
        self.known_tokens.extend(job.attempts.iter().map(|attempt| attempt.token));
        self.note_grants(before, job);
        self.follow_job(job);
        let mut stored = job.clone();
        let on_record = self.jobs.present(&job.id);
        // A renewal that lives among the leases alone stays there, also when the record is written
        // for another reason.
        for attempt in stored.attempts.iter_mut().filter(|attempt| attempt.closed.is_none()) {
            let as_read = before.and_then(|before| before.attempt(attempt.token));
            if let Some(known) = on_record.and_then(|job| job.attempt(attempt.token))
                && as_read.is_some_and(|as_read| as_read.lease == attempt.lease)
            {
                attempt.lease = known.lease;
            }
        }
        self.jobs.put(job.id, stored);
        Ok(())
    }

    fn live_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        self.by_key(Which::Live, &OwnKey::new(tenant, key), JobState::is_live)
    }

    fn complete_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        let complete = |state| state == JobState::Complete;
        self.by_key(Which::Complete, &OwnKey::new(tenant, key), complete)
    }

    fn newest_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        let own = OwnKey::new(tenant, key);
        let live = self.by_key(Which::Live, &own, |_| true);
        let over = self.by_key(Which::Over, &own, |_| true);
        Ok(live?.max(over?))
    }

    fn due(
        &mut self,
        fits: &[Capability],
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<JobId>, Fault> {
        let mut found: Vec<Place> = Vec::new();
        // Named twice, it would be granted twice.
        for capability in fits.iter().collect::<BTreeSet<_>>() {
            match self.queues.look(capability, limit, |place| self.stands_due(place, now)) {
                Look::Found(places) => found.extend(places),
                Look::More(count) => {
                    return Err(self.miss(|wants| {
                        Wants::at_least(&mut wants.due, capability, count);
                    }));
                }
            }
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, _, id)| id).take(limit).collect())
    }

    fn next_due(
        &mut self,
        fits: &[Capability],
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Fault> {
        let mut earliest: Option<Timestamp> = None;
        let mut at = |at: Timestamp| earliest = Some(earliest.map_or(at, |known| known.min(at)));
        for capability in fits {
            let Some(next) = self.next.get(capability) else {
                return Err(self.miss(|wants| wants.next.insert(capability.clone())));
            };
            next.run_at.into_iter().for_each(&mut at);
            // Due, looked for, and yet not here: another transaction has it, and may yet let go.
            if next.due_elsewhere && self.queues.has_seen_all(capability) {
                at(now.plus_ms(LOOK_AGAIN_MS));
            }
            let later = self.queues.of(capability).filter(|(_, run_at, _)| *run_at > now);
            later.filter(|place| self.stands_due(place, place.1)).for_each(|place| at(place.1));
        }
        Ok(earliest)
    }

    fn granted(
        &mut self,
        session: &SessionId,
        claim: &RequestId,
    ) -> Result<Vec<(JobId, Number)>, Fault> {
        let key = (session.clone(), claim.clone());
        match self.claims.get(&key) {
            Some(grants) => Ok(grants.cloned().unwrap_or_default()),
            None => Err(self.miss(|wants| wants.claims.insert(key))),
        }
    }

    fn held(&mut self) -> &mut dyn HeldLeases {
        self
    }

    fn recorded(&mut self, scope: &Scope, id: &RequestId) -> Result<Option<Recorded>, Fault> {
        let key = (scope.clone(), id.clone());
        match self.requests.get(&key) {
            Some(recorded) => Ok(recorded.cloned()),
            None => Err(self.miss(|wants| wants.requests.insert(key))),
        }
    }

    fn record(&mut self, scope: &Scope, id: &RequestId, answer: &Recorded) -> Result<(), Fault> {
        self.requests.put((scope.clone(), id.clone()), answer.clone());
        Ok(())
    }

    fn blob(&mut self, digest: Digest) -> Result<Option<Blob>, Fault> {
        match self.newest_blobs.get(&digest) {
            Some(blob) => Ok(blob.copied()),
            None => Err(self.miss(|wants| wants.blobs.insert(digest))),
        }
    }

    fn put_blob(&mut self, blob: &Blob) -> Result<(), Fault> {
        // Of a digest that nobody has asked for, the database knows the newest.
        let newest = self.newest_blobs.get(&blob.digest);
        let is_newest = |newest: &Blob| newest.generation <= blob.generation;
        if newest.is_some_and(|newest| newest.is_none_or(is_newest)) {
            self.newest_blobs.put(blob.digest, *blob);
        }
        self.blobs.put(blob.generation, *blob);
        Ok(())
    }

    fn keep_blob(
        &mut self,
        digest: Digest,
        generation: Number,
        keeper: &Keeper,
    ) -> Result<(), Fault> {
        self.keeping.push(Keeping::Keep(digest, generation, keeper.clone()));
        Ok(())
    }

    fn drop_keeper(&mut self, keeper: &Keeper) -> Result<(), Fault> {
        self.keeping.push(Keeping::Drop(keeper.clone()));
        Ok(())
    }

    fn append(&mut self, events: &[Event]) -> Result<(), Fault> {
        self.entries.extend_from_slice(events);
        Ok(())
    }

    fn record_clock(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.clock = Some(self.clock.map_or(now, |clock| clock.max(now)));
        Ok(())
    }
}
