//! Locks and fenced objects as the real operations see them. Every renewal is durable here: a
//! world whose locks forget theirs is stricter only about time, which the drill has.

use std::rc::Rc;

use palisade_core::{
    JobId, LockName, Number, ObjectKey, RequestId, Timestamp,
    lock::{Lock, LockGrant},
    object::Object,
};
use palisade_store::{
    fault::Fault,
    tables::{LockTables, ObjectTables},
};

use super::CrashEngine;

impl LockTables for CrashEngine {
    fn lock(&mut self, name: &LockName) -> Result<Option<Lock>, Fault> {
        Ok(self.live.locks.get(name).map(|lock| Lock::clone(lock)))
    }

    fn put_lock(&mut self, _before: Option<&Lock>, lock: &Lock) -> Result<(), Fault> {
        self.room()?;
        self.live.locks.insert(lock.name.clone(), Rc::new(lock.clone()));
        Ok(())
    }

    fn lock_grant(&mut self, token: Number) -> Result<Option<LockGrant>, Fault> {
        Ok(self.live.lock_grants.get(&token).map(|grant| LockGrant::clone(grant)))
    }

    fn lock_grant_of(
        &mut self,
        name: &LockName,
        request: &RequestId,
    ) -> Result<Option<LockGrant>, Fault> {
        let newest_first = self.live.lock_grants.values().rev();
        let mut of_it = newest_first.filter(|g| g.name == *name && g.request_id == *request);
        Ok(of_it.next().map(|grant| LockGrant::clone(grant)))
    }

    fn forget_lock_grants(&mut self, ended_before: Timestamp, limit: usize) -> Result<(), Fault> {
        let ended = |grant: &Rc<LockGrant>| grant.closed.map(|(at, _)| (at, grant.pair.token));
        let mut spent: Vec<_> = self.live.lock_grants.values().filter_map(ended).collect();
        spent.retain(|(at, _)| *at < ended_before);
        spent.sort_unstable();
        for (_, token) in spent.into_iter().take(limit) {
            self.live.lock_grants.remove(&token);
        }
        Ok(())
    }

    fn put_lock_grant(&mut self, grant: &LockGrant) -> Result<(), Fault> {
        self.room()?;
        self.live.lock_grants.insert(grant.pair.token, Rc::new(grant.clone()));
        Ok(())
    }

    fn waited_for(&mut self) -> Vec<LockName> {
        let waited = self.live.locks.values().filter(|lock| !lock.waiters.is_empty());
        waited.map(|lock| lock.name.clone()).collect()
    }

    fn any_lock_held(&mut self) -> bool {
        self.live.locks.values().any(|lock| lock.holding.is_some())
    }
}

impl ObjectTables for CrashEngine {
    fn object(&mut self, key: &ObjectKey) -> Result<Option<Object>, Fault> {
        Ok(self.live.objects.get(key).map(|object| Object::clone(object)))
    }

    fn put_object(&mut self, object: &Object) -> Result<(), Fault> {
        self.room()?;
        self.live.objects.insert(object.key.clone(), Rc::new(object.clone()));
        Ok(())
    }

    fn job_of_token(&mut self, token: Number) -> Result<Option<JobId>, Fault> {
        let of_token = self.live.jobs.values().find(|job| job.attempt(token).is_some());
        Ok(of_token.map(|job| job.id))
    }
}
