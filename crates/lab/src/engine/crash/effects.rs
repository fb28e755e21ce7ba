//! Locks, fenced objects and publications as the real operations see them.
//!
//! What a restart of the real store forgets is forgotten here: waiters, whose connections broke
//! with it, and a lock's renewals but the first of each life.

use std::rc::Rc;

use palisade_core::{
    JobId, LockName, Number, ObjectKey, RequestId, Timestamp,
    lease::Start,
    lock::{Lock, LockGrant},
    object::Object,
};
use palisade_store::{
    fault::Fault,
    lock_book::must_be_durable,
    tables::{LockTables, ObjectTables, PublicationTables},
};

use crate::sabotage::{Sabotage, locks as bent};

use super::{CrashEngine, Records};

impl Records {
    /// What the disk has of the locks once `live` is committed, given what it had.
    pub(super) fn locks_on_disk(&mut self, before: &Self) {
        let is_kept_in_memory = |(name, lock): &(&LockName, &Rc<Lock>)| {
            let old = before.locks.get(*name).filter(|old| !Rc::ptr_eq(old, lock));
            old.is_some_and(|old| !must_be_durable(Some(old), lock))
        };
        let in_memory: Vec<_> = self.locks.iter().filter(is_kept_in_memory).collect();
        let in_memory: Vec<_> = in_memory.into_iter().map(|(name, _)| name.clone()).collect();
        for name in in_memory {
            let old = Rc::clone(&before.locks[&name]);
            self.locks.insert(name, old);
        }
    }

    /// Nobody waits any more: every connection broke.
    pub(super) fn forget_waiters(&mut self) {
        for lock in self.locks.values_mut().filter(|lock| !lock.waiters.is_empty()) {
            Rc::make_mut(lock).waiters.clear();
        }
    }

    /// Every lock after a start: time that was not served counts against nobody.
    pub(super) fn locks_after_start(&mut self, start: Start) {
        let gap_ms = start.now.at.since_ms(start.recorded_at);
        for lock in self.locks.values_mut() {
            let lock = Rc::make_mut(lock);
            if let Some(holding) = &mut lock.holding {
                holding.lease = holding.lease.after_start(start);
            }
            for waiter in &mut lock.waiters {
                waiter.alive_until = waiter.alive_until.plus_ms(gap_ms);
            }
        }
    }
}

impl LockTables for CrashEngine {
    fn lock(&mut self, name: &LockName) -> Result<Option<Lock>, Fault> {
        let mut lock = self.live.locks.get(name).map(|lock| Lock::clone(lock));
        bent::on_read(self.broken, lock.as_mut());
        Ok(lock)
    }

    fn put_lock(&mut self, before: Option<&Lock>, lock: &Lock) -> Result<(), Fault> {
        self.room()?;
        let mut lock = lock.clone();
        bent::on_put(self.broken, before, &mut lock);
        self.live.locks.insert(lock.name.clone(), Rc::new(lock));
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
        if self.broken == Some(Sabotage::LockRequestsForgotten) {
            return Ok(None);
        }
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

impl PublicationTables for CrashEngine {
    fn publications_due(&mut self, limit: usize) -> Result<Vec<(Number, JobId)>, Fault> {
        let due = self.live.publications_due.iter().take(limit);
        Ok(due.map(|(submission, job)| (*submission, *job)).collect())
    }

    fn put_publication_due(&mut self, submission: Number, job: JobId) -> Result<(), Fault> {
        self.room()?;
        self.live.publications_due.insert(submission, job);
        Ok(())
    }

    fn drop_publication_due(&mut self, submission: Number) -> Result<(), Fault> {
        self.room()?;
        self.live.publications_due.remove(&submission);
        Ok(())
    }
}
