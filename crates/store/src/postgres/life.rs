//! Lives: what becomes of leases when nobody served for a while, when the database was restarted,
//! and when its clock jumped.
//!
//! The clock is the database's wall time plus what it was ever ahead of it, recorded every second
//! by whoever serves. Time that nobody recorded was not served: an outage of the database or of
//! all servers, and a jump forward of its clock, which looks the same. Then a life begins, in one
//! transaction, alone: every lease is given back the time that was not served.

use std::collections::BTreeMap;

use deadpool_postgres::Client;
use palisade_core::{
    JobId, Timestamp,
    job::Job,
    lease::{Moment, Start},
    lock::Lock,
};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    lease_book::{Held, LeaseBook},
    lock_book::LockBook,
    tables::HeldLeases,
};

use super::{
    engine::Engine,
    fetch,
    records::{job, lease, lock},
    session::pipeline,
    trouble::Trouble,
    values::{Columns, fault, instant, int},
};

/// A gap between two records of the clock after which nobody was serving, in ms.
pub const GAP_MS: u64 = 5_000;
/// How far the database's clock may seem to go back before that is a jump, in ms. Less is noise:
/// the clock stands still meanwhile.
pub(super) const BACK_MS: u64 = 2_000;
/// The same for a server that starts: had anybody served, the clock would be younger, in ms.
pub(super) const START_GAP_MS: u64 = 1_500;
/// The lock that every batch shares, and that whoever starts a life takes alone.
pub(super) const LIFE_LOCK: i64 = 0x70_616c_6c69;
/// The lock that every batch shares which looks at the endpoints, and that whoever changes them
/// takes alone.
pub(super) const ENDPOINTS_LOCK: i64 = LIFE_LOCK + 2;
/// Jobs whose leases are written in one statement.
const JOBS_AT_ONCE: usize = 1_000;

/// The clock's row, read in a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockRow {
    pub(super) recorded: Timestamp,
    pub(super) ahead_ms: i64,
    pub(super) life: u64,
    pub(super) wall: Timestamp,
}

impl ClockRow {
    pub(super) fn decode(row: &Row) -> Result<Self, Fault> {
        let columns = Columns::new("clock", row);
        Ok(Self {
            recorded: columns.instant(0)?,
            ahead_ms: columns.get(1)?,
            life: columns.unsigned(2)?,
            wall: columns.instant(3)?,
        })
    }

    /// What the clock says, if `wall` is what the wall says.
    pub(super) fn now(&self, wall: Timestamp) -> Timestamp {
        Timestamp(wall.0.saturating_add_signed(self.ahead_ms))
    }
}

/// Why a life may have to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The clock was not recorded for so long, in ms.
    Gap(u64),
    /// The database was restarted: what was not logged is gone.
    Restart,
}

impl Engine {
    /// Gives leases back the time that was not served, and sets a clock right that jumped.
    pub(super) async fn mind_time(&self) -> Result<(), Trouble> {
        let client = self.writer().await?;
        begin_alone(&client).await?;
        let done = self.mind(&client, Cause::Gap(GAP_MS)).await;
        end_alone(&client, done).await
    }

    /// The same, inside a transaction of somebody who is alone.
    pub(super) async fn mind(&self, client: &Client, cause: Cause) -> Result<(), Fault> {
        let rows = client.query(fetch::CLOCK, &[]).await.map_err(fault)?;
        let mut row = ClockRow::decode(&rows[0])?;
        let wall = self.clock.wall(row.wall);
        if row.now(wall).plus_ms(BACK_MS) < row.recorded {
            let back_ms = row.recorded.since_ms(row.now(wall));
            tracing::warn!(back_ms, "the database's clock jumped back; the store's goes on");
            row.ahead_ms = int(row.recorded.0) - int(wall.0);
            let ahead = "UPDATE clock SET ahead_ms = $1";
            client.execute(ahead, &[&row.ahead_ms]).await.map_err(fault)?;
        }
        let now = row.now(wall).max(row.recorded);
        self.clock.hear(now);
        let gap_ms = now.since_ms(row.recorded);
        match cause {
            // Somebody else was faster.
            Cause::Gap(least_ms) if gap_ms <= least_ms => return Ok(()),
            Cause::Gap(_) if row.life == 0 => tracing::info!("the store's first life begins"),
            Cause::Gap(_) => {
                tracing::warn!(gap_ms, "nobody served for a while; leases get their time back");
            }
            Cause::Restart => {
                tracing::warn!(gap_ms, "the database was restarted; leases get their time back");
            }
        }
        let moment = Moment { at: now, life: row.life + 1 };
        let start = Start { past_life: row.life, recorded_at: row.recorded, now: moment };
        renew_leases(client, start).await?;
        renew_locks(client, start).await?;
        let begin = "UPDATE clock SET clock_ms = $1, life = $2";
        client.execute(begin, &[&instant(now), &int(moment.life)]).await.map_err(fault)?;
        Ok(())
    }
}

/// Begins a transaction that runs while no batch runs anywhere.
pub(super) async fn begin_alone(client: &Client) -> Result<(), Trouble> {
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({LIFE_LOCK})");
    client.batch_execute(&begin).await.map_err(Trouble::before_commit)
}

/// Ends it, as what was done in it says.
pub(super) async fn end_alone(client: &Client, done: Result<(), Fault>) -> Result<(), Trouble> {
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = client.batch_execute(end).await;
    done.map_err(Trouble::Fault)?;
    ended.map_err(|error| Trouble::of_commit(&error))
}

/// Every open attempt's lease after the start, in its job's record and among the leases: after a
/// crash of the database there are none, and the records have them as granted or as first renewed
/// in a life, which is what decides.
async fn renew_leases(client: &Client, start: Start) -> Result<(), Fault> {
    let sql = "SELECT id, version, record FROM jobs WHERE state = 'running' ORDER BY id";
    let mut jobs: BTreeMap<JobId, (Job, i64)> = BTreeMap::new();
    for row in client.query(sql, &[]).await.map_err(fault)? {
        let (job, version) = job::decode(&row)?;
        jobs.insert(job.id, (job, version));
    }
    let mut book = LeaseBook::default();
    for (job, _) in jobs.values() {
        book.follow(job);
    }
    for row in client.query(lease::EVERY, &[]).await.map_err(fault)? {
        let held = lease::decode(&row)?;
        if book.get(held.token).is_some() {
            book.set_lease(held.token, held.lease);
        }
    }
    for (token, lease) in book.after_start(start) {
        let id = book.get(token).expect("it was just told of").job;
        book.set_lease(token, lease);
        let (job, _) = jobs.get_mut(&id).expect("what is held is of a job");
        let attempt = job.attempts.iter_mut().find(|attempt| attempt.token == token);
        attempt.expect("what is held is an attempt").lease = lease;
    }
    client.batch_execute("DELETE FROM leases").await.map_err(fault)?;
    let held: Vec<&Held> = book.all().collect();
    for some in held.chunks(JOBS_AT_ONCE) {
        all(pipeline(vec![lease::insert(client, some)]).await)?;
    }
    let jobs: Vec<_> = jobs.values().collect();
    for some in jobs.chunks(JOBS_AT_ONCE) {
        let records: Vec<&Job> = some.iter().map(|(job, _)| job).collect();
        let versions = some.iter().map(|(_, version)| *version).collect();
        all(pipeline(vec![job::update(client, &records, versions)]).await)?;
    }
    Ok(())
}

/// Every held lock's lease, and those who wait, after the start.
async fn renew_locks(client: &Client, start: Start) -> Result<(), Fault> {
    let held = "SELECT name FROM locks WHERE token IS NOT NULL";
    let rows = client.query(held, &[]).await.map_err(fault)?;
    let names: Result<Vec<String>, _> = rows.iter().map(|row| row.try_get(0)).collect();
    let answers = all(pipeline(lock::find(client, names.map_err(fault)?).into()).await)?;
    let mut locks: BTreeMap<_, Lock> = BTreeMap::new();
    for row in &answers[0] {
        let lock = lock::decode(row)?;
        locks.insert(lock.name.clone(), lock);
    }
    for row in &answers[1] {
        let (name, waiter) = lock::decode_waiter(row)?;
        if let Some(lock) = locks.get_mut(&name) {
            lock.waiters.push(waiter);
        }
    }
    let mut book = LockBook::default();
    for lock in locks.values() {
        book.follow(lock);
    }
    let after = book.after_start(start);
    let records: Vec<&Lock> = after.iter().collect();
    let changes: Vec<_> = after.iter().map(|lock| (locks.get(&lock.name), lock)).collect();
    let mut questions = lock::waiters(client, &changes);
    if !records.is_empty() {
        questions.push(lock::update(client, &records));
    }
    all(pipeline(questions).await).map(drop)
}

fn all(answers: Vec<super::session::Answer>) -> Result<Vec<Vec<Row>>, Fault> {
    answers.into_iter().map(|answer| answer.map_err(fault)).collect()
}
