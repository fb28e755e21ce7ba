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

use super::{
    engine::SqliteEngine,
    records::{lock, object, publication},
};

impl LockTables for SqliteEngine {
    fn lock(&mut self, name: &LockName) -> Result<Option<Lock>, Fault> {
        match self.lock_book.get(name) {
            Some(lock) => Ok(Some(lock.clone())),
            None => lock::read(&self.connection, name),
        }
    }

    fn put_lock(&mut self, before: Option<&Lock>, lock: &Lock) -> Result<(), Fault> {
        self.lock_book.follow(lock);
        if must_be_durable(before, lock) {
            self.wrote = true;
            lock::write(&self.connection, lock)?;
        }
        Ok(())
    }

    fn lock_grant(&mut self, token: Number) -> Result<Option<LockGrant>, Fault> {
        lock::read_grant(&self.connection, token)
    }

    fn lock_grant_of(
        &mut self,
        name: &LockName,
        request: &RequestId,
    ) -> Result<Option<LockGrant>, Fault> {
        lock::read_grant_of(&self.connection, name, request)
    }

    fn forget_lock_grants(&mut self, ended_before: Timestamp, limit: usize) -> Result<(), Fault> {
        self.wrote |= lock::forget_grants(&self.connection, ended_before, limit)?;
        Ok(())
    }

    fn put_lock_grant(&mut self, grant: &LockGrant) -> Result<(), Fault> {
        self.wrote = true;
        lock::write_grant(&self.connection, grant)
    }

    fn waited_for(&mut self) -> Vec<LockName> {
        self.lock_book.waited_for()
    }

    fn any_lock_held(&mut self) -> bool {
        !self.lock_book.is_empty()
    }
}

impl ObjectTables for SqliteEngine {
    fn object(&mut self, key: &ObjectKey) -> Result<Option<Object>, Fault> {
        object::read(&self.connection, key)
    }

    fn put_object(&mut self, object: &Object) -> Result<(), Fault> {
        self.wrote = true;
        object::write(&self.connection, object)
    }

    fn job_of_token(&mut self, token: Number) -> Result<Option<JobId>, Fault> {
        object::job_of_token(&self.connection, token)
    }
}

impl PublicationTables for SqliteEngine {
    fn publications_due(&mut self, limit: usize) -> Result<Vec<(Number, JobId)>, Fault> {
        publication::due(&self.connection, limit)
    }

    fn put_publication_due(&mut self, submission: Number, job: JobId) -> Result<(), Fault> {
        self.wrote = true;
        publication::put(&self.connection, submission, job)
    }

    fn drop_publication_due(&mut self, submission: Number) -> Result<(), Fault> {
        self.wrote = true;
        publication::drop_due(&self.connection, submission)
    }
}
