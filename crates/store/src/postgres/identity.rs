//! Which cluster this is, and whether it is the one that wrote here last: looked at on each new
//! connection, before anything is asked of it.
//!
//! A fail-over may have lost the last transactions, a restored copy has lost many. Either way the
//! sequence stands lower than numbers that were answered. So wherever the cluster is not the one
//! that wrote here last, or stands behind what this server has seen itself, the counter jumps by
//! 2^32, which no store draws in the time that a loss can reach back. Old pairs stay harmless
//! beyond that: their lease ids are random, and a pair is both.

use std::sync::{Mutex, PoisonError, atomic::Ordering};

use deadpool_postgres::Client;
use palisade_core::{Invalid, Number};
use tokio_postgres::error::SqlState;

use crate::{artefacts::Moved, fault::Fault};

use super::{
    engine::Engine,
    life::{self, Cause},
    trouble::Trouble,
    values::{Columns, count, fault},
};

/// How far the counter jumps when numbers may have been lost.
pub const JUMP: u64 = 1 << 32;

/// Which cluster a connection leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cluster {
    /// Made with the cluster; none where we may not know.
    system_id: Option<String>,
    /// Rises with each fail-over and each restore to a point in time.
    timeline: String,
    /// When its server process started, in seconds.
    started: String,
    /// The database's number in it, and that of the table `meta`.
    place: String,
}

/// What the database says of who wrote last.
#[derive(Debug, Clone)]
struct Recorded {
    system_id: Option<String>,
    timeline: Option<String>,
    started: Option<String>,
    place: Option<String>,
    /// Whether what is not logged is still there. The start time does not tell: where a single
    /// backend is killed, the server recovers from the crash and goes on as the same.
    whole: bool,
    counter: u64,
    position: u64,
}

/// The cluster that this server knows. Another server may have settled a fail-over before this one
/// noticed: then the database looks as it should, and what was told here is of another history.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<Option<Cluster>>);

impl Known {
    /// Takes in where a connection led. Answers whether that is elsewhere than before.
    fn moved_to(&self, cluster: &Cluster) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.replace(cluster.clone());
        before.is_some_and(|before| before != *cluster)
    }
}

/// Why numbers may have been lost.
fn lost(cluster: &Cluster, recorded: &Recorded, seen: (u64, u64)) -> Option<&'static str> {
    // A store that nobody has written yet.
    let timeline = recorded.timeline.as_ref()?;
    let other = |theirs: &Option<String>, ours: &Option<String>| {
        theirs.is_some() && ours.is_some() && theirs != ours
    };
    if other(&recorded.system_id, &cluster.system_id) {
        return Some("this is another cluster than the one that wrote here last");
    }
    if *timeline != cluster.timeline {
        return Some("the cluster is on another timeline than when it wrote here last");
    }
    if recorded.place.as_ref().is_some_and(|place| *place != cluster.place) {
        return Some("the tables are a copy of those that were written last");
    }
    if recorded.counter < seen.0 || recorded.position < seen.1 {
        return Some("the database is older than what this server has seen of it");
    }
    None
}

impl Engine {
    /// Looks at a new connection's cluster. Where it is not as it was, whatever has to be done is
    /// done before the connection is used.
    pub(super) async fn vet(&self, client: &Client) -> Result<(), Trouble> {
        if let Some(why) = takes_no_writes(client).await.map_err(Trouble::Fault)? {
            return Err(Trouble::Fault(Fault::ReadOnly(why.to_owned())));
        }
        let cluster = cluster(client).await.map_err(Trouble::Fault)?;
        let now = recorded(client).await.map_err(Trouble::Fault)?;
        if self.differs(&cluster, &now) {
            life::begin_alone(client).await?;
            let done = self.settle(client, &cluster).await;
            life::end_alone(client, done).await?;
        }
        if self.known.moved_to(&cluster) {
            let now = recorded(client).await.map_err(Trouble::Fault)?;
            self.news.restored(now.position);
        }
        Ok(())
    }

    fn differs(&self, cluster: &Cluster, now: &Recorded) -> bool {
        lost(cluster, now, self.seen()).is_some()
            || now.timeline.as_ref() != Some(&cluster.timeline)
            || now.started.as_ref() != Some(&cluster.started)
            || now.place.as_ref() != Some(&cluster.place)
            || !now.whole
    }

    /// The highest number and position that this server has seen.
    fn seen(&self) -> (u64, u64) {
        (self.highest.load(Ordering::SeqCst), self.news.position())
    }

    async fn settle(&self, client: &Client, cluster: &Cluster) -> Result<(), Fault> {
        // Another server may have done it meanwhile.
        let recorded = recorded(client).await?;
        if let Some(why) = lost(cluster, &recorded, self.seen()) {
            let from = recorded.counter.max(self.seen().0);
            tracing::error!(why, from, by = JUMP, "numbers may have been lost: the counter jumps");
            raise_to(client, from.saturating_add(JUMP)).await?;
            self.highest.store(0, Ordering::SeqCst);
            self.news.restored(recorded.position);
        }
        let restarted = recorded.started.as_ref() != Some(&cluster.started) || !recorded.whole;
        if restarted && recorded.started.is_some() {
            self.mind(client, Cause::Restart).await?;
        }
        let write = "UPDATE meta SET system_id = coalesce($1, system_id), timeline = $2, \
                     started = $3, place = $4";
        let Cluster { system_id, timeline, started, place } = cluster;
        client.execute(write, &[system_id, timeline, started, place]).await.map_err(fault)?;
        let alive = "INSERT INTO alive VALUES (1) ON CONFLICT DO NOTHING";
        client.execute(alive, &[]).await.map_err(fault)?;
        Ok(())
    }
}

/// Why nothing can be written along a connection, if that is so.
pub(super) async fn takes_no_writes(
    client: &tokio_postgres::Client,
) -> Result<Option<&'static str>, Fault> {
    let sql = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'";
    let row = client.query_one(sql, &[]).await.map_err(fault)?;
    let columns = Columns::new("recovery", &row);
    Ok(match (columns.get(0)?, columns.get(1)?) {
        (true, _) => Some("it is a standby, still in recovery"),
        (false, true) => Some("it was set to be read-only"),
        (false, false) => None,
    })
}

async fn cluster(client: &Client) -> Result<Cluster, Fault> {
    let identifier = "SELECT system_identifier::text FROM pg_control_system()";
    let system_id = match client.query_one(identifier, &[]).await {
        Ok(row) => Some(Columns::new("cluster", &row).get(0)?),
        // A managed service may forbid it; the timeline and our own memory are left.
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => None,
        Err(error) => return Err(fault(error)),
    };
    // The timeline that is written now: the control file learns of it only at a checkpoint.
    let rest = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8), \
                extract(epoch FROM pg_postmaster_start_time())::text, \
                (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || \
                'meta'::regclass::oid";
    let row = client.query_one(rest, &[]).await.map_err(fault)?;
    let columns = Columns::new("cluster", &row);
    let (timeline, started, place) = (columns.get(0)?, columns.get(1)?, columns.get(2)?);
    Ok(Cluster { system_id, timeline, started, place })
}

async fn recorded(client: &Client) -> Result<Recorded, Fault> {
    let sql = "SELECT system_id, timeline, started, last_value, position, \
               EXISTS (SELECT 1 FROM alive), place FROM meta, counter, head";
    let row = client.query_one(sql, &[]).await.map_err(fault)?;
    let columns = Columns::new("meta", &row);
    Ok(Recorded {
        system_id: columns.get(0)?,
        timeline: columns.get(1)?,
        started: columns.get(2)?,
        whole: columns.get(5)?,
        place: columns.get(6)?,
        counter: columns.unsigned(3)?,
        position: columns.unsigned(4)?,
    })
}

/// Raises the counter to a number, unless it stands higher. Not undone by a rollback.
async fn raise_to(client: &Client, number: u64) -> Result<u64, Fault> {
    let number = number.min(Number::MAX.get());
    let sql = "SELECT setval('counter', greatest(last_value, $1)) FROM counter";
    let to = count(usize::try_from(number).unwrap_or(usize::MAX));
    let row = client.query_one(sql, &[&to]).await.map_err(fault)?;
    Columns::new("counter", &row).unsigned(0)
}

/// Raises the counter by so much, by an operator's hand, or says why not. Answers where it stands.
pub(super) async fn raise_by(client: &Client, by: u64) -> Result<Result<u64, Invalid>, Fault> {
    let standing = recorded(client).await?.counter;
    let to = Number::new(standing).and_then(|standing| standing.raised_by(by));
    match to {
        Ok(to) => raise_to(client, to.get()).await.map(Ok),
        Err(invalid) => Ok(Err(invalid)),
    }
}

/// The store's own name.
pub(super) async fn store_id(engine: &Engine) -> Result<String, Trouble> {
    let client = engine.writer().await?;
    let row = client.query_one("SELECT store_id FROM meta", &[]).await;
    let row = row.map_err(Trouble::before_commit)?;
    Columns::new("meta", &row).get(0).map_err(Trouble::Fault)
}

/// Binds the store to a place for artefacts, unless it is bound to another. Answers to which.
pub(super) async fn bind_artefacts(
    engine: &Engine,
    place: &str,
    moved: Moved,
) -> Result<String, Trouble> {
    let client = engine.writer().await?;
    let sql = match moved {
        Moved::No => "UPDATE meta SET artefacts = coalesce(artefacts, $1) RETURNING artefacts",
        Moved::Yes => "UPDATE meta SET artefacts = $1 RETURNING artefacts",
    };
    let row = client.query_one(sql, &[&place]).await.map_err(|error| Trouble::of_commit(&error))?;
    Columns::new("meta", &row).get(0).map_err(Trouble::Fault)
}

#[cfg(test)]
mod tests;
