//! The records as the operations see them.

use palisade_core::{
    Digest, JobId, Number, RequestId, SessionId, Tenant, Timestamp, blob::Blob, history::Event,
    job::Job, spec::JobKey,
};
use rusqlite::params;

use crate::{
    command::Capability,
    fault::Fault,
    tables::{HeldLeases, Keeper, Recorded, Scope, Tables},
};

use super::{
    due,
    engine::SqliteEngine,
    records::{blob, claim, job, request},
    values::{Columns, fault},
};

const LIVE: &str = "SELECT id FROM jobs WHERE live = 1 AND job_key = ?1 AND tenant = ?2";
const COMPLETE: &str = "SELECT id FROM jobs WHERE live = 0 AND job_key = ?1 AND tenant = ?2 \
                        AND state = 'complete' ORDER BY id DESC LIMIT 1";
const OVER: &str = "SELECT id FROM jobs WHERE live = 0 AND job_key = ?1 AND tenant = ?2 \
                    ORDER BY id DESC LIMIT 1";

impl SqliteEngine {
    fn find(&self, sql: &str, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        let mut statement = self.connection.prepare_cached(sql).map_err(fault)?;
        let mut rows =
            statement.query(params![key.0.as_bytes(), tenant.as_str()]).map_err(fault)?;
        match rows.next().map_err(fault)? {
            None => Ok(None),
            Some(row) => Columns::new("job", row).job(0).map(Some),
        }
    }

    /// Remembers what each claim was granted: one row a claim is written at the commit.
    fn note_grants(&mut self, before: Option<&Job>, job: &Job) {
        let known = before.map_or(0, |before| before.attempts.len());
        for attempt in &job.attempts[known..] {
            let claim = (attempt.session.clone(), attempt.claim.clone());
            self.grants.entry(claim).or_default().push((job.id, attempt.token));
        }
    }
}

impl Tables for SqliteEngine {
    fn draw(&mut self) -> Result<Number, Fault> {
        // Written at the commit. A rollback leaves it as it is, so no number comes twice.
        self.wrote = true;
        self.meta.counter = self.meta.counter.next();
        Ok(self.meta.counter)
    }

    fn job(&mut self, id: JobId) -> Result<Option<Job>, Fault> {
        self.load(id)
    }

    fn put_job(&mut self, before: Option<&Job>, job: &Job) -> Result<(), Fault> {
        self.wrote = true;
        job::write(&self.connection, before, job)?;
        let from = before.map(|before| before.state);
        if from != Some(job.state) {
            self.meta.count_move(from, job.state);
        }
        self.note_grants(before, job);
        self.book.follow(job);
        self.cache.follow(job);
        Ok(())
    }

    fn live_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        self.find(LIVE, tenant, key)
    }

    fn complete_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        self.find(COMPLETE, tenant, key)
    }

    fn newest_job(&mut self, tenant: &Tenant, key: JobKey) -> Result<Option<JobId>, Fault> {
        let live = self.find(LIVE, tenant, key)?;
        Ok(live.max(self.find(OVER, tenant, key)?))
    }

    fn due(
        &mut self,
        fits: &[Capability],
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<JobId>, Fault> {
        due::due(&self.connection, fits, now, limit)
    }

    fn next_due(
        &mut self,
        fits: &[Capability],
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Fault> {
        due::next_due(&self.connection, fits, now)
    }

    fn granted(
        &mut self,
        session: &SessionId,
        claim: &RequestId,
    ) -> Result<Vec<(JobId, Number)>, Fault> {
        match self.grants.get(&(session.clone(), claim.clone())) {
            Some(grants) => Ok(grants.clone()),
            None => claim::read(&self.connection, session, claim),
        }
    }

    fn held(&mut self) -> &mut dyn HeldLeases {
        &mut self.book
    }

    fn recorded(&mut self, scope: &Scope, id: &RequestId) -> Result<Option<Recorded>, Fault> {
        request::read(&self.connection, scope, id)
    }

    fn record(&mut self, scope: &Scope, id: &RequestId, answer: &Recorded) -> Result<(), Fault> {
        self.wrote = true;
        request::write(&self.connection, scope, id, answer, self.now)
    }

    fn blob(&mut self, digest: Digest) -> Result<Option<Blob>, Fault> {
        blob::newest(&self.connection, digest)
    }

    fn put_blob(&mut self, blob: &Blob) -> Result<(), Fault> {
        self.wrote = true;
        blob::write(&self.connection, blob)
    }

    fn keep_blob(
        &mut self,
        _digest: Digest,
        generation: Number,
        keeper: &Keeper,
    ) -> Result<(), Fault> {
        // A generation is drawn for one digest alone, so it names the blob by itself.
        self.wrote = true;
        blob::keep(&self.connection, generation, keeper)
    }

    fn drop_keeper(&mut self, keeper: &Keeper) -> Result<(), Fault> {
        self.wrote |= blob::drop_keeper(&self.connection, keeper)? > 0;
        Ok(())
    }

    fn append(&mut self, events: &[Event]) -> Result<(), Fault> {
        self.wrote = true;
        self.entries.extend_from_slice(events);
        Ok(())
    }

    fn record_clock(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.wrote = true;
        self.meta.clock = self.meta.clock.max(now);
        Ok(())
    }
}
