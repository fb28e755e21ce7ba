//! Locks, fenced objects and publications as the operations see them.

use palisade_core::{
    JobId, LockName, Number, ObjectKey, RequestId, Timestamp,
    lock::{Lock, LockGrant},
    object::Object,
};

use crate::{
    fault::Fault,
    lock_book::must_be_durable,
    tables::{LockTables, ObjectTables, PublicationTables},
};

use super::MemoryEngine;

impl MemoryEngine {
    /// A lock as it is now.
    pub(super) fn read_lock(&self, name: &LockName) -> Option<Lock> {
        self.lock_book.get(name).or_else(|| self.locks.get(name)).cloned()
    }
}

impl LockTables for MemoryEngine {
    fn lock(&mut self, name: &LockName) -> Result<Option<Lock>, Fault> {
        Ok(self.read_lock(name))
    }

    fn put_lock(&mut self, before: Option<&Lock>, lock: &Lock) -> Result<(), Fault> {
        self.lock_book.follow(lock);
        if must_be_durable(before, lock) {
            self.wrote = true;
            let stored = Lock { waiters: Vec::new(), ..lock.clone() };
            self.locks.insert(lock.name.clone(), stored);
        }
        Ok(())
    }

    fn lock_grant(&mut self, token: Number) -> Result<Option<LockGrant>, Fault> {
        Ok(self.lock_grants.get(&token).cloned())
    }

    fn lock_grant_of(
        &mut self,
        name: &LockName,
        request: &RequestId,
    ) -> Result<Option<LockGrant>, Fault> {
        let newest_first = self.lock_grants.values().rev();
        let mut of_it = newest_first.filter(|g| g.name == *name && g.request_id == *request);
        Ok(of_it.next().cloned())
    }

    fn forget_lock_grants(&mut self, ended_before: Timestamp, limit: usize) -> Result<(), Fault> {
        let ended = |grant: &LockGrant| grant.closed.map(|(at, _)| (at, grant.pair.token));
        let mut spent: Vec<_> = self.lock_grants.values().filter_map(ended).collect();
        spent.retain(|(at, _)| *at < ended_before);
        spent.sort_unstable();
        for (_, token) in spent.into_iter().take(limit) {
            self.wrote = true;
            self.lock_grants.remove(&token);
        }
        Ok(())
    }

    fn put_lock_grant(&mut self, grant: &LockGrant) -> Result<(), Fault> {
        self.wrote = true;
        self.lock_grants.insert(grant.pair.token, grant.clone());
        Ok(())
    }

    fn waited_for(&mut self) -> Vec<LockName> {
        self.lock_book.waited_for()
    }

    fn any_lock_held(&mut self) -> bool {
        !self.lock_book.is_empty()
    }
}

impl ObjectTables for MemoryEngine {
    fn object(&mut self, key: &ObjectKey) -> Result<Option<Object>, Fault> {
        Ok(self.objects.get(key).cloned())
    }

    fn put_object(&mut self, object: &Object) -> Result<(), Fault> {
        self.wrote = true;
        self.objects.insert(object.key.clone(), object.clone());
        Ok(())
    }

    fn job_of_token(&mut self, token: Number) -> Result<Option<JobId>, Fault> {
        let of_token = self.jobs.values().find(|job| job.attempt(token).is_some());
        Ok(of_token.map(|job| job.id))
    }
}

impl PublicationTables for MemoryEngine {
    fn publications_due(&mut self, limit: usize) -> Result<Vec<(Number, JobId)>, Fault> {
        let due = self.publications_due.iter().take(limit);
        Ok(due.map(|(submission, job)| (*submission, *job)).collect())
    }

    fn put_publication_due(&mut self, submission: Number, job: JobId) -> Result<(), Fault> {
        self.wrote = true;
        self.publications_due.insert(submission, job);
        Ok(())
    }

    fn drop_publication_due(&mut self, submission: Number) -> Result<(), Fault> {
        self.wrote = true;
        self.publications_due.remove(&submission);
        Ok(())
    }
}
