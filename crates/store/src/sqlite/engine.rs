//! The engine: records in SQLite, and batches of commands upon them. Synchronous, its clock an
//! argument, so that a simulator can drive it too.

use std::collections::BTreeMap;

use palisade_core::{
    JobId, LockName, Number, RequestId, SessionId, Timestamp,
    history::Event,
    job::Job,
    lease::{Lease, Moment, Start},
    lock::Lock,
    outbox::Endpoint,
};
use rusqlite::Connection;

use crate::{
    command::Command,
    failure::Failure,
    fault::Fault,
    lease_book::LeaseBook,
    lock_book::LockBook,
    query::{Query, View},
    tables::HeldLeases,
};

use super::{
    cache::JobCache,
    high_water,
    lock::FolderLock,
    open::{self, OpenError, Place},
    reading,
    records::{attempt, claim::Grants, lock, meta::Meta},
    values::fault,
};

/// A gap between two batches (or ticks) after which the engine was not serving, in ms. Leases that
/// ran out meanwhile get their time back before anything else runs.
pub const GAP_MS: u64 = 5_000;

/// All records of a store, in SQLite.
#[derive(Debug)]
pub struct SqliteEngine {
    pub(super) connection: Connection,
    pub(super) place: Place,
    /// None in memory.
    _lock: Option<FolderLock>,
    pub(super) book: LeaseBook,
    pub(super) lock_book: LockBook,
    pub(super) cache: JobCache,
    /// As the running transaction has them. None: to be read.
    pub(super) endpoints: Option<Vec<Endpoint>>,
    /// As the running transaction has it.
    pub(super) meta: Meta,
    /// As the last commit left it.
    pub(super) committed: Meta,
    /// Whether the running transaction has written anything.
    pub(super) wrote: bool,
    /// Journal entries of the running transaction.
    pub(super) entries: Vec<Event>,
    /// When the running transaction began.
    pub(super) now: Timestamp,
    /// Grants of the running transaction, by claim.
    pub(super) grants: BTreeMap<(SessionId, RequestId), Grants>,
    /// When it served last.
    pub(super) served_at: Timestamp,
    /// What is wrong with the connection, if something is: it has to be opened anew.
    pub(super) broken: Option<String>,
    /// Leases that changed since they were last asked for.
    pub(super) changed_leases: ChangedLeases,
}

/// Leases as memory has them, for readers that see only the disk.
#[derive(Debug, Default)]
pub struct ChangedLeases {
    /// Everything told before is void: all leases are on disk again.
    pub all_on_disk: bool,
    /// Each lease that changed, or none where it is no longer held. The last word on one counts.
    pub leases: Vec<(Number, Option<Lease>)>,
    /// The same for locks, those who wait included; none where one is free.
    pub locks: Vec<(LockName, Option<Lock>)>,
}

impl SqliteEngine {
    /// Opens, makes what is missing, and begins a life: before anything is served, every lease is
    /// given back the time in which nobody served.
    pub fn open(place: Place, now: Timestamp) -> Result<Self, OpenError> {
        let lock = match &place {
            Place::Memory => None,
            Place::Folder(folder) => {
                open::make_folder(folder)?;
                Some(FolderLock::take(folder)?)
            }
        };
        let connection = open::writer(&place)?;
        let named = place.to_string();
        let database = |source| OpenError::Database { place: named, source };
        Self::over(connection, place, lock, now).map_err(database)
    }

    fn over(
        connection: Connection,
        place: Place,
        lock: Option<FolderLock>,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let meta = Meta::read(&connection)?;
        let mut engine = Self {
            connection,
            place,
            _lock: lock,
            book: LeaseBook::default(),
            lock_book: LockBook::default(),
            cache: JobCache::default(),
            endpoints: None,
            meta,
            committed: meta,
            wrote: false,
            entries: Vec::new(),
            now,
            grants: BTreeMap::new(),
            served_at: now,
            broken: None,
            changed_leases: ChangedLeases::default(),
        };
        engine.read_and_start(now)?;
        Ok(engine)
    }

    /// The clock as far as it has come. It never runs backwards, whatever `now` is handed in.
    pub fn clock(&self) -> Timestamp {
        self.served_at.max(self.meta.clock)
    }

    /// Answers a query, renewals in memory included.
    pub fn query(&self, query: &Query) -> Result<View, Failure> {
        let renewed = |token| self.book.get(token).map(|held| held.lease);
        let locks = |name: &LockName| self.lock_book.get(name).cloned();
        let memory = reading::Memory { renewed: &renewed, locks: &locks };
        reading::query(&self.connection, query, memory)
            .map_err(|fault| Failure::Unavailable(fault.to_string()))
    }

    /// The leases that changed since the last call.
    pub fn take_changed_leases(&mut self) -> ChangedLeases {
        std::mem::take(&mut self.changed_leases)
    }

    /// Lets the database grow by no more than so many pages, as if the disk had no more room; none:
    /// as far as the disk goes. For whoever wants to see what a full disk does.
    pub fn leave_room(&self, pages: Option<u32>) -> Result<(), Failure> {
        let ask = |sql: &str| self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let limited = ask("PRAGMA page_count").and_then(|count| {
            let most = pages.map_or(i64::from(u32::MAX - 1), |pages| count + i64::from(pages));
            ask(&format!("PRAGMA max_page_count = {most}"))
        });
        limited.map(drop).map_err(|error| Failure::Unavailable(error.to_string()))
    }

    /// Whether a command only takes a place in the queue of a lock that another holds, so that
    /// nothing is lost should it be decided a moment later.
    pub fn can_wait(&self, command: &Command) -> bool {
        let Command::AcquireLock(asked) = command else { return false };
        let holding = self.lock_book.get(&asked.name).and_then(|lock| lock.holding.as_ref());
        let others = holding.is_some_and(|held| held.request_id != asked.wish.request_id);
        others && asked.wish.wait_ms > 0
    }

    /// Records the clock, for an orderly end: the time served until now counts.
    pub fn close(mut self, now: Timestamp) -> Result<(), Failure> {
        let now = self.clock().max(now);
        self.meta.clock = now;
        let write = self.in_transaction(|engine| engine.meta.write(&engine.connection));
        write.map_err(|fault| Failure::Unavailable(fault.to_string()))
    }

    /// The last number drawn.
    pub(super) fn counter(&self) -> Number {
        self.meta.counter
    }

    /// Raises the counter by so much. Answers where it stands.
    pub(super) fn raise_counter(&mut self, to: Number) -> Result<Number, Fault> {
        self.meta.counter = self.meta.counter.max(to);
        self.in_transaction(|engine| engine.meta.write(&engine.connection))?;
        Ok(self.meta.counter)
    }

    /// Jumps over numbers that were answered and are not in the database any more, if the file
    /// beside it knows of any: it is an older copy. Written with what the start writes.
    fn notice_loss(&mut self) {
        let Place::Folder(folder) = &self.place else { return };
        let counter = self.meta.counter;
        if let Some(jumped) = high_water::after_loss(high_water::read(folder), counter) {
            tracing::error!(%counter, %jumped, "an older copy was restored: the counter jumps");
            self.meta.counter = jumped;
        }
    }

    /// Reads what the disk has, after an open, and begins a life.
    fn read_and_start(&mut self, now: Timestamp) -> Result<(), Fault> {
        let on_disk = Meta::read(&self.connection)?;
        // A commit whose outcome nobody knew may not have reached the disk: what was drawn for it
        // stays drawn.
        let counter = on_disk.counter.max(self.meta.counter);
        self.meta = Meta { counter, ..on_disk };
        self.committed = self.meta;
        self.notice_loss();
        self.book = LeaseBook::default();
        for job in reading::jobs_with_open_attempts(&self.connection)? {
            self.book.follow(&job);
        }
        self.book.commit(|_, _| {});
        self.endpoints = None;
        self.lock_book = LockBook::default();
        for lock in lock::held(&self.connection)? {
            self.lock_book.follow(&lock);
        }
        self.lock_book.commit(|_, _| {});
        self.start(on_disk.clock, now)
    }

    /// Begins a life after a time that was not served, in one transaction. `recorded_at` is when
    /// it is known to have served last.
    pub(super) fn start(&mut self, recorded_at: Timestamp, now: Timestamp) -> Result<(), Fault> {
        let past_life = self.meta.life;
        let moment = Moment { at: now.max(self.clock()), life: past_life + 1 };
        let start = Start { past_life, recorded_at, now: moment };
        self.meta.life = moment.life;
        self.meta.clock = moment.at;
        self.cache = JobCache::default();
        self.in_transaction(|engine| {
            for (token, lease) in engine.book.after_start(start) {
                let job = engine.book.get(token).expect("it was just told of").job;
                engine.book.set_lease(token, lease);
                attempt::write_lease(&engine.connection, job, token, lease)?;
            }
            for lock in engine.lock_book.after_start(start) {
                engine.lock_book.follow(&lock);
                lock::write(&engine.connection, &lock)?;
            }
            engine.meta.write(&engine.connection)
        })?;
        let held = self.lock_book.all().map(|lock| (lock.name.clone(), Some(lock.clone())));
        let locks = held.collect();
        self.changed_leases = ChangedLeases { all_on_disk: true, leases: Vec::new(), locks };
        self.served_at = moment.at;
        Ok(())
    }

    /// Opens the database anew, after an error that leaves it unknown what reached the disk.
    pub(super) fn reopen(&mut self, now: Timestamp) -> Result<(), Fault> {
        if let Place::Folder(_) = self.place {
            self.connection =
                open::writer(&self.place).map_err(|error| Fault::Engine(error.into()))?;
            // Whatever the log holds is copied into the database and synced there: a log whose
            // sync has failed once may read well and yet not be on the disk.
            let checkpoint = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            let busy = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], checkpoint)
                .map_err(fault)?;
            tracing::debug!(busy, "the log was copied after a reopening");
        }
        self.read_and_start(now)?;
        self.broken = None;
        Ok(())
    }

    /// Runs writes of the engine's own in a transaction of their own; upon a fault memory is as
    /// before.
    fn in_transaction(
        &mut self,
        writes: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.begin()?;
        let done = writes(self).and_then(|()| self.commit_now());
        if done.is_err() {
            self.roll_back();
        }
        done
    }

    /// Begins a transaction.
    pub(super) fn begin(&mut self) -> Result<(), Fault> {
        self.wrote = false;
        self.run_sql("BEGIN IMMEDIATE")
    }

    /// Commits; then memory follows.
    pub(super) fn commit_now(&mut self) -> Result<(), Fault> {
        self.run_sql("COMMIT")?;
        self.committed = self.meta;
        let ChangedLeases { leases, locks, .. } = &mut self.changed_leases;
        self.book.commit(|token, lease| leases.push((token, lease)));
        self.lock_book.commit(|name, lock| locks.push((name, lock)));
        Ok(())
    }

    /// Takes everything of the running transaction back, on disk and in memory. Numbers that were
    /// drawn stay drawn.
    pub(super) fn roll_back(&mut self) {
        // After some errors SQLite has rolled back already.
        if !self.connection.is_autocommit()
            && let Err(error) = self.run_sql("ROLLBACK")
        {
            self.broken = Some(error.to_string());
        }
        self.book.roll_back_to(0);
        self.lock_book.roll_back_to(0);
        self.cache = JobCache::default();
        self.endpoints = None;
        self.meta = Meta { counter: self.meta.counter, ..self.committed };
        self.entries.clear();
        self.grants.clear();
    }

    pub(super) fn run_sql(&self, sql: &str) -> Result<(), Fault> {
        let mut statement = self.connection.prepare_cached(sql).map_err(fault)?;
        statement.execute([]).map(drop).map_err(fault)
    }

    /// A job's record as the running transaction has it, its leases as last renewed.
    pub(super) fn load(&mut self, id: JobId) -> Result<Option<Job>, Fault> {
        let mut job = match self.cache.get(id) {
            Some(job) => Some(job.clone()),
            None => super::records::job::read(&self.connection, id)?,
        };
        if let Some(job) = &mut job {
            self.book.overlay(job);
        }
        Ok(job)
    }
}
