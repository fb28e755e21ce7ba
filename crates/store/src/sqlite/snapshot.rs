//! The records of a data folder as they lie on the disk at one moment.

use std::{collections::BTreeMap, path::Path};

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    blob::Blob,
    history::Event,
    job::Job,
    lock::{Lock, LockGrant},
    object::Object,
    outbox::{Delivery, Endpoint},
};
use rusqlite::Connection;

use crate::{
    fault::Fault,
    query::Page,
    snapshot::{ROWS_AT_ONCE, Snapshot},
};

use super::{
    open::{self, OpenError, Place},
    records::{blob, job, journal, lock, meta::Meta, object, outbox, publication},
    values::{Columns, fault},
};

/// A read of one moment. Renewals that live in the serving process's memory are not in it.
#[derive(Debug)]
pub struct SqliteSnapshot {
    connection: Connection,
}

impl SqliteSnapshot {
    /// Opens the records of a data folder, as they are now.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let place = Place::Folder(folder.to_owned()).to_string();
        let open = || -> Result<Connection, Fault> {
            let connection = open::looker(folder)?;
            // Never ended: all that is read is of the moment of the first read.
            connection.execute_batch("BEGIN; SELECT one FROM meta;").map_err(fault)?;
            Ok(connection)
        };
        let connection = open().map_err(|source| OpenError::Database { place, source })?;
        Ok(Self { connection })
    }

    fn pages<T>(
        &self,
        list: impl Fn(&Connection, &Page) -> Result<Vec<T>, Fault>,
        name: impl Fn(&T) -> String,
        sink: &mut dyn FnMut(&T),
    ) -> Result<(), Fault> {
        let mut page = Page { limit: ROWS_AT_ONCE, ..Page::default() };
        loop {
            let all = list(&self.connection, &page)?;
            let Some(last) = all.last() else { return Ok(()) };
            page.after = Some(name(last));
            all.iter().for_each(&mut *sink);
        }
    }
}

impl Snapshot for SqliteSnapshot {
    fn counter(&self) -> Result<Number, Fault> {
        Ok(Meta::read(&self.connection)?.counter)
    }

    fn has_one_writer(&self) -> bool {
        true
    }

    fn clock(&self) -> Result<Timestamp, Fault> {
        Ok(Meta::read(&self.connection)?.clock)
    }

    fn jobs(&self, sink: &mut dyn FnMut(JobId, Result<Job, Fault>)) -> Result<(), Fault> {
        let sql = "SELECT id FROM jobs UNION SELECT job FROM attempts ORDER BY 1";
        let mut statement = self.connection.prepare(sql).map_err(fault)?;
        let mut rows = statement.query([]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            let id = Columns::new("job", row).job(0)?;
            let gone = || Fault::Corrupt {
                record: id.to_string(),
                what: "it has attempts, but is not there".to_owned(),
            };
            sink(id, job::read(&self.connection, id).and_then(|job| job.ok_or_else(gone)));
        }
        Ok(())
    }

    fn journal(&self, sink: &mut dyn FnMut(u64, &Event)) -> Result<(), Fault> {
        let mut position = 0;
        loop {
            let entries = journal::after(&self.connection, position, ROWS_AT_ONCE)?;
            let Some((last, _)) = entries.last() else { return Ok(()) };
            position = *last;
            for (at, event) in &entries {
                sink(*at, event);
            }
        }
    }

    fn locks(&self, sink: &mut dyn FnMut(&Lock)) -> Result<(), Fault> {
        self.pages(lock::list, |lock: &Lock| lock.name.to_string(), sink)
    }

    fn lock_grants(&self, sink: &mut dyn FnMut(&LockGrant)) -> Result<(), Fault> {
        let mut after = Number::ZERO;
        loop {
            let grants = lock::grants_after(&self.connection, after, ROWS_AT_ONCE)?;
            let Some(last) = grants.last() else { return Ok(()) };
            after = last.pair.token;
            grants.iter().for_each(&mut *sink);
        }
    }

    fn objects(&self, sink: &mut dyn FnMut(&Object)) -> Result<(), Fault> {
        self.pages(object::list_all, |object: &Object| object.key.to_string(), sink)
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>, Fault> {
        outbox::endpoints(&self.connection)
    }

    fn deliveries(&self, sink: &mut dyn FnMut(&Delivery)) -> Result<(), Fault> {
        let mut after = Number::ZERO;
        loop {
            let rows = outbox::after(&self.connection, after, ROWS_AT_ONCE)?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.number;
            rows.iter().for_each(&mut *sink);
        }
    }

    fn publications_due(&self) -> Result<BTreeMap<Number, JobId>, Fault> {
        Ok(publication::due(&self.connection, usize::MAX)?.into_iter().collect())
    }

    fn blob(&self, digest: Digest) -> Result<Option<Blob>, Fault> {
        blob::newest(&self.connection, digest)
    }
}
