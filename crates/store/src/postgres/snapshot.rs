//! The records of a database at one moment, as one transaction sees them that only reads. It reads
//! nothing that is unlogged, so a standby can be looked at too.

use std::{collections::BTreeMap, future::Future};

use deadpool_postgres::Client;
use palisade_core::{
    Digest, JobId, Number, Timestamp,
    blob::Blob,
    history::Event,
    job::Job,
    lock::{Lock, LockGrant},
    object::Object,
    outbox::{Delivery, Endpoint},
};
use tokio::runtime::Handle;
use tokio_postgres::{Row, types::ToSql};

use crate::{
    fault::Fault,
    snapshot::{ROWS_AT_ONCE, Snapshot},
};

use super::{
    address::{Address, Purpose},
    open::{self, OpenError},
    reading::{self, BEGIN, NEWEST_BLOB, select},
    records::{blob, job, lock, object, outbox},
    schema,
    values::{Columns, count, fault, number},
};

const COUNTER: &str = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM counter";
const CLOCK: &str = "SELECT clock_ms FROM clock";
const JOBS: &str =
    "SELECT id, version, record, released FROM jobs WHERE id > $1 ORDER BY id LIMIT $2";
/// Jobs that were granted, and have no row.
const GONE: &str = "SELECT DISTINCT t.job FROM tokens t LEFT JOIN jobs j ON j.id = t.job \
    WHERE j.id IS NULL ORDER BY t.job";
const LOCKS: &str = "SELECT fence, name, holding FROM locks WHERE name > $1 ORDER BY name LIMIT $2";
const LOCK_GRANTS: &str = "SELECT token, lock, lease_id, holder, request_id, closed_at_ms, \
    close_reason FROM lock_grants WHERE token > $1 ORDER BY token LIMIT $2";
const OBJECTS: &str =
    "SELECT fence, key, kind, last, content FROM objects WHERE key > $1 ORDER BY key LIMIT $2";
const PUBLICATIONS_DUE: &str = "SELECT submission, job FROM publications_due";

/// A read of one moment.
pub struct PostgresSnapshot {
    client: Client,
    runtime: Handle,
}

impl std::fmt::Debug for PostgresSnapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresSnapshot").finish_non_exhaustive()
    }
}

impl PostgresSnapshot {
    /// Opens the records as they are now. They are read on this runtime, but from a thread that may
    /// block.
    pub async fn open(address: &Address) -> Result<Self, OpenError> {
        let place = address.shown();
        let database = |source| OpenError::Database { place: place.clone(), source };
        let pool = open::pool(address, Purpose::Read, 1).map_err(database)?;
        let unreachable = |error: deadpool_postgres::PoolError| Fault::Engine(error.into());
        let client = pool.get().await.map_err(unreachable).map_err(database)?;
        client.batch_execute(BEGIN).await.map_err(fault).map_err(database)?;
        // The first read: all others are of its moment.
        schema::readable(&client, &place).await?;
        Ok(Self { client, runtime: Handle::current() })
    }

    fn ask<T>(&self, question: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        self.runtime.block_on(question)
    }

    fn select(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Fault> {
        self.ask(select(&self.client, sql, values))
    }

    /// All rows of a statement that takes a cursor and a limit.
    fn walk<K: ToSql + Sync, T>(
        &self,
        (sql, mut after): (&str, K),
        decode: impl Fn(&Row) -> Result<T, Fault>,
        key: impl Fn(&T) -> K,
        sink: &mut dyn FnMut(&T),
    ) -> Result<(), Fault> {
        loop {
            let rows = self.select(sql, &[&after, &count(ROWS_AT_ONCE)])?;
            for row in &rows {
                let record = decode(row)?;
                after = key(&record);
                sink(&record);
            }
            if rows.len() < ROWS_AT_ONCE {
                return Ok(());
            }
        }
    }
}

impl Snapshot for PostgresSnapshot {
    fn counter(&self) -> Result<Number, Fault> {
        // A sequence is of no moment: asked later, it only stands higher.
        let rows = self.select(COUNTER, &[])?;
        Columns::new("counter", &rows[0]).number(0)
    }

    fn has_one_writer(&self) -> bool {
        false
    }

    fn clock(&self) -> Result<Timestamp, Fault> {
        let rows = self.select(CLOCK, &[])?;
        Columns::new("clock", &rows[0]).instant(0)
    }

    fn jobs(&self, sink: &mut dyn FnMut(JobId, Result<Job, Fault>)) -> Result<(), Fault> {
        let mut after = 0;
        loop {
            let rows = self.select(JOBS, &[&after, &count(ROWS_AT_ONCE)])?;
            for row in &rows {
                let id = Columns::new("job", row).job(0)?;
                after = job::id(id);
                sink(id, job::decode(row).map(|(job, _)| job));
            }
            if rows.len() < ROWS_AT_ONCE {
                break;
            }
        }
        for row in self.select(GONE, &[])? {
            let id = Columns::new("token", &row).job(0)?;
            let what = "it has attempts, but is not there".to_owned();
            sink(id, Err(Fault::Corrupt { record: id.to_string(), what }));
        }
        Ok(())
    }

    fn journal(&self, sink: &mut dyn FnMut(u64, &Event)) -> Result<(), Fault> {
        let mut position = 0;
        loop {
            let entries = self.ask(reading::events(&self.client, position, ROWS_AT_ONCE))?;
            let Some((last, _)) = entries.last() else { return Ok(()) };
            position = *last;
            for (at, event) in &entries {
                sink(*at, event);
            }
        }
    }

    fn locks(&self, sink: &mut dyn FnMut(&Lock)) -> Result<(), Fault> {
        self.walk((LOCKS, String::new()), lock::decode, |lock| lock.name.to_string(), sink)
    }

    fn lock_grants(&self, sink: &mut dyn FnMut(&LockGrant)) -> Result<(), Fault> {
        let key = |grant: &LockGrant| number(grant.pair.token);
        self.walk((LOCK_GRANTS, 0_i64), lock::decode_grant, key, sink)
    }

    fn objects(&self, sink: &mut dyn FnMut(&Object)) -> Result<(), Fault> {
        let key = |object: &Object| object.key.to_string();
        self.walk((OBJECTS, String::new()), object::decode, key, sink)
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>, Fault> {
        self.select(outbox::ENDPOINTS, &[])?.iter().map(outbox::decode_endpoint).collect()
    }

    fn deliveries(&self, sink: &mut dyn FnMut(&Delivery)) -> Result<(), Fault> {
        self.walk((outbox::AFTER, 0_i64), outbox::decode, |row| number(row.number), sink)
    }

    fn publications_due(&self) -> Result<BTreeMap<Number, JobId>, Fault> {
        let decode = |row: &Row| {
            let columns = Columns::new("publication due", row);
            Ok((columns.number(0)?, columns.job(1)?))
        };
        self.select(PUBLICATIONS_DUE, &[])?.iter().map(decode).collect()
    }

    fn blob(&self, digest: Digest) -> Result<Option<Blob>, Fault> {
        let rows = self.select(NEWEST_BLOB, &[&digest.as_bytes().as_slice()])?;
        rows.first().map(blob::decode).transpose()
    }
}
