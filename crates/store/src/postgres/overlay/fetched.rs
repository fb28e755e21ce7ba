//! Taking in what was fetched. Nothing of it is ever taken back.

use std::collections::BTreeSet;

use palisade_core::{
    Digest, JobId, LockName, Number, RequestId, SessionId, Timestamp,
    blob::Blob,
    job::Job,
    lock::{Lock, LockGrant},
};

use crate::{command::Capability, lease_book::Held};

use super::{Next, Overlay, OwnKey, Place, Which, place_of, queue::capability_of};

impl Overlay {
    /// A job's row, or that there is none.
    pub(in crate::postgres) fn fetched_job(&mut self, id: JobId, row: Option<(Job, i64)>) {
        let Some((job, version)) = row else { return self.jobs.fetch(id, None) };
        self.versions.insert(id, version);
        self.fence = self.fence.max(Some(job.fence));
        self.follow_job(&job);
        if !job.has_open_attempt() {
            self.whole.insert(id);
        }
        self.jobs.fetch(id, Some(job));
    }

    /// Whether a job that has come is released.
    pub(in crate::postgres) fn fetched_released(&mut self, id: JobId, released: bool) {
        self.released.fetch(id, released.then_some(()));
    }

    /// Keeps the job in what finds it: by its key, in its queue.
    pub(super) fn follow_job(&mut self, job: &Job) {
        self.by_key.entry(OwnKey::new(&job.tenant, job.key)).or_default().insert(job.id);
        self.queues.follow(job);
    }

    /// Which job a key leads to.
    pub(in crate::postgres) fn fetched_key(
        &mut self,
        which: Which,
        own: OwnKey,
        id: Option<JobId>,
    ) {
        self.keys.insert((which, own), id);
    }

    /// So many due jobs of a capability were asked for, and these came. Each has its row already.
    pub(in crate::postgres) fn fetched_due(
        &mut self,
        capability: &Capability,
        asked: usize,
        came: &[JobId],
    ) {
        let places: Vec<Place> =
            came.iter().filter_map(|id| self.jobs.present(id)).map(place_of).collect();
        self.queues.reached(capability, asked, &places);
    }

    /// So many lapsed jobs of a capability were asked for, and so many came.
    pub(in crate::postgres) fn fetched_lapsed(
        &mut self,
        capability: &Capability,
        asked: usize,
        came: &[JobId],
    ) {
        self.candidates.extend(came);
        self.lapsed.insert(capability.clone(), (asked, came.len() < asked));
    }

    /// The same of jobs that may get a backup.
    pub(in crate::postgres) fn fetched_backups(
        &mut self,
        capability: &Capability,
        asked: usize,
        came: &[JobId],
    ) {
        self.candidates.extend(came);
        self.backups.insert(capability.clone(), (asked, came.len() < asked));
    }

    /// Jobs that are given up were asked for, and have come.
    pub(in crate::postgres) fn fetched_spent(&mut self, came: &[JobId]) {
        self.candidates.extend(came);
        self.spent_fetched = true;
    }

    /// When something becomes claimable, apart from what is here.
    pub(in crate::postgres) fn fetched_next(&mut self, capability: Capability, next: Next) {
        self.next.insert(capability, next);
    }

    /// The same of leases: when the first lapses, and when one may get a backup.
    pub(in crate::postgres) fn fetched_next_lease(
        &mut self,
        capability: &Capability,
        lapses: Option<Timestamp>,
        backup: Option<Timestamp>,
    ) {
        let next = self.next.entry(capability.clone()).or_default();
        (next.lapses, next.backup) = (lapses, backup);
    }

    /// A lease's row.
    pub(in crate::postgres) fn fetched_lease(&mut self, held: Held) {
        // Asked for twice, by its token and by its job: the row is locked, so it is the same.
        if self.lease_rows.contains_key(&held.token) {
            return;
        }
        self.known_tokens.insert(held.token);
        self.lease_rows.insert(held.token, held.clone());
        self.book.load(held);
    }

    /// Whether these are held is known from now on.
    pub(in crate::postgres) fn fetched_tokens(&mut self, tokens: impl IntoIterator<Item = Number>) {
        self.known_tokens.extend(tokens);
    }

    /// All leases of these jobs have come.
    pub(in crate::postgres) fn fetched_whole(&mut self, jobs: impl IntoIterator<Item = JobId>) {
        self.whole.extend(jobs);
    }

    /// All leases of a session have come, and the highest heartbeat seen of it.
    pub(in crate::postgres) fn fetched_session(&mut self, session: SessionId, seq: Option<u64>) {
        self.whole_sessions.insert(session.clone());
        self.sessions.fetch(session, seq);
    }

    /// A digest's newest generation.
    pub(in crate::postgres) fn fetched_blob(&mut self, digest: Digest, row: Option<Blob>) {
        if let Some(blob) = row {
            self.blobs.fetch(blob.generation, Some(blob));
        }
        self.newest_blobs.fetch(digest, row);
    }

    /// A lock, with those who wait for it.
    pub(in crate::postgres) fn fetched_lock(&mut self, name: LockName, row: Option<Lock>) {
        if let Some(lock) = &row {
            self.fence = self.fence.max(Some(lock.fence));
        }
        self.locks.fetch(name, row);
    }

    /// A grant of a lock.
    pub(in crate::postgres) fn fetched_grant(&mut self, grant: LockGrant) {
        self.lock_grants.fetch(grant.pair.token, Some(grant));
    }

    /// Whether a request was ever granted a lock, and the newest of such grants.
    pub(in crate::postgres) fn fetched_grant_of(
        &mut self,
        of: (LockName, RequestId),
        token: Option<Number>,
    ) {
        self.grants_of.insert(of, token);
    }

    /// Grants that ended long enough ago.
    pub(in crate::postgres) fn fetched_spent_grants(&mut self, tokens: Vec<Number>) {
        self.spent_grants = Some(tokens);
    }

    /// The locks at which something is overdue. They are locked, but not here yet.
    pub(in crate::postgres) fn fetched_overdue_locks(&mut self, names: BTreeSet<LockName>) {
        self.overdue_locks = Some(names);
    }

    /// How many jobs and leases are here.
    pub(in crate::postgres) fn rows(&self) -> usize {
        self.versions.len() + self.lease_rows.len()
    }

    /// More is here now than when somebody asked what comes next apart from it: that answer may be
    /// about what is here.
    pub(in crate::postgres) fn forget_next(&mut self) {
        self.next.clear();
    }

    /// Numbers, drawn after all of the above was locked.
    pub(in crate::postgres) fn fetched_numbers(&mut self, numbers: Vec<Number>) {
        self.numbers = numbers;
    }

    /// Jobs that are here and of this capability: what is not here was asked for apart from them.
    pub(in crate::postgres) fn known_jobs(&self, capability: &Capability) -> Vec<JobId> {
        let of_capability =
            |id: &&JobId| self.jobs.before(id).is_some_and(|job| capability_of(job) == *capability);
        self.jobs.keys().filter(of_capability).copied().collect()
    }
}
