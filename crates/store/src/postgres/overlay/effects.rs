//! Locks and fenced objects as the operations see them.

use palisade_core::{
    JobId, LockName, Number, ObjectKey, RequestId, Timestamp,
    lock::{Lock, LockGrant},
    object::Object,
};

use crate::{
    fault::Fault,
    tables::{LockTables, ObjectTables},
};

use super::Overlay;

impl LockTables for Overlay {
    fn lock(&mut self, name: &LockName) -> Result<Option<Lock>, Fault> {
        match self.locks.get(name) {
            Some(lock) => Ok(lock.cloned()),
            None => Err(self.miss(|wants| wants.locks.insert(name.clone()))),
        }
    }

    fn put_lock(&mut self, _before: Option<&Lock>, lock: &Lock) -> Result<(), Fault> {
        // Renewals and those who wait are written too: other servers look at the same row.
        self.locks.put(lock.name.clone(), lock.clone());
        Ok(())
    }

    fn lock_grant(&mut self, token: Number) -> Result<Option<LockGrant>, Fault> {
        match self.lock_grants.get(&token) {
            Some(grant) => Ok(grant.cloned()),
            None => Err(self.miss(|wants| wants.lock_grants.insert(token))),
        }
    }

    fn lock_grant_of(
        &mut self,
        name: &LockName,
        request: &RequestId,
    ) -> Result<Option<LockGrant>, Fault> {
        let of = (name.clone(), request.clone());
        let Some(fetched) = self.grants_of.get(&of) else {
            return Err(self.miss(|wants| wants.grants_of.insert(of)));
        };
        let fits = |grant: &&LockGrant| grant.name == *name && grant.request_id == *request;
        let here = self.lock_grants.changes().map(|(_, _, grant)| grant);
        let known = fetched.and_then(|token| self.lock_grants.present(&token));
        Ok(here.chain(known).filter(fits).max_by_key(|grant| grant.pair.token).cloned())
    }

    fn forget_lock_grants(&mut self, _ended_before: Timestamp, limit: usize) -> Result<(), Fault> {
        // Asked for when the clock was last heard of, a moment before: what has ended in between is
        // forgotten next time.
        let Some(spent) = &self.spent_grants else {
            return Err(self.miss(|wants| wants.spent_grants = true));
        };
        for token in spent.iter().take(limit).copied().collect::<Vec<_>>() {
            self.lock_grants.remove(token);
        }
        Ok(())
    }

    fn put_lock_grant(&mut self, grant: &LockGrant) -> Result<(), Fault> {
        self.lock_grants.put(grant.pair.token, grant.clone());
        Ok(())
    }

    fn waited_for(&mut self) -> Vec<LockName> {
        let Some(overdue) = &self.overdue_locks else {
            self.miss(|wants| wants.overdue_locks = true);
            return Vec::new();
        };
        let missing = overdue.iter().filter(|name| self.locks.get(name).is_none());
        let missing: Vec<_> = missing.cloned().collect();
        if !missing.is_empty() {
            self.miss(|wants| wants.locks.extend(missing));
            return Vec::new();
        }
        // Of those that are not here nothing is overdue, so that a tick would not change them.
        let waited = |name: &&LockName| {
            self.locks.present(name).is_some_and(|lock| !lock.waiters.is_empty())
        };
        let mut names: Vec<_> = self.locks.keys().filter(waited).cloned().collect();
        names.sort_unstable();
        names
    }

    fn any_lock_held(&mut self) -> bool {
        // Only asked in order to save the recording of the clock, which many servers share.
        true
    }
}

impl ObjectTables for Overlay {
    fn object(&mut self, key: &ObjectKey) -> Result<Option<Object>, Fault> {
        match self.objects.get(key) {
            Some(object) => Ok(object.cloned()),
            None => Err(self.miss(|wants| wants.objects.insert(key.clone()))),
        }
    }

    fn put_object(&mut self, object: &Object) -> Result<(), Fault> {
        self.objects.put(object.key.clone(), object.clone());
        Ok(())
    }

    fn job_of_token(&mut self, token: Number) -> Result<Option<JobId>, Fault> {
        match self.tokens.get(&token) {
            Some(job) => Ok(job.copied()),
            None => Err(self.miss(|wants| wants.tokens.insert(token))),
        }
    }
}
