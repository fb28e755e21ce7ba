//! Locks, fenced objects and publications as the real operations see them. Every renewal is durable here: a
//! world whose locks forget theirs is stricter only about time, which the drill has.

use std::rc::Rc;

use palisade_core::{
    JobId, LockName, Number, ObjectKey,
    lock::{Lock, LockGrant},
    object::Object,
};
use palisade_store::{
    fault::Fault,
    tables::{LockTables, ObjectTables, PublicationTables},
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
