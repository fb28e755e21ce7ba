//! What all parts of the store share: connections, the clock, what was seen of the database.

use std::sync::atomic::AtomicU64;

use deadpool_postgres::{Client, Object, Pool};

use super::{
    busy::Busy, clock::DatabaseClock, identity::Known, news::News, session, trouble::Trouble,
};

/// What each connection is told first. A server that stops in the middle of a transaction keeps
/// its rows from others for five seconds, no more; whoever waits for them waits longer than that.
/// Plans are made once, and always by an index: a plan made while a table was empty would read all
/// of it later.
pub(super) const SETTINGS: &str = "SET idle_in_transaction_session_timeout = '5s'; SET lock_timeout = '8s'; \
    SET statement_timeout = '60s'; SET plan_cache_mode = force_generic_plan; SET jit = off; \
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
    SET client_min_messages = warning; SET synchronous_commit = on; \
    SET default_transaction_isolation = 'read committed'";

/// The records, and batches of commands upon them. Nothing that decides anything lives in here:
/// the database has it, and many servers share it.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) writers: Pool,
    pub(super) readers: Pool,
    pub(super) clock: DatabaseClock,
    /// The highest number that was committed here.
    pub(super) highest: AtomicU64,
    pub(super) news: News,
    /// The cluster that a connection led to last.
    pub(super) known: Known,
}

impl Engine {
    /// A connection for a batch.
    pub(super) async fn writer(&self) -> Result<Client, Trouble> {
        self.connection(&self.writers).await
    }

    /// A connection to read along.
    pub(super) async fn reader(&self) -> Result<Client, Trouble> {
        self.connection(&self.readers).await
    }

    async fn connection(&self, pool: &Pool) -> Result<Client, Trouble> {
        let client = pool.get().await.map_err(Trouble::of_pool)?;
        if Object::metrics(&client).recycled.is_some() {
            return Ok(client);
        }
        // Not looked at, it must not be found in the pool.
        let client = Busy::new(client);
        self.make_ready(&client).await?;
        Ok(client.done())
    }

    /// Leaves a database that takes no writes any more, though its connections are whole: each is
    /// made again, and goes to another host of the address where there is one.
    pub(super) fn look_elsewhere(&self) {
        drop(self.writers.retain(|_, _| false));
        drop(self.readers.retain(|_, _| false));
        self.news.look_elsewhere();
    }

    async fn make_ready(&self, client: &Client) -> Result<(), Trouble> {
        client.batch_execute(SETTINGS).await.map_err(Trouble::before_commit)?;
        self.vet(client).await?;
        session::introduce(client).await.map_err(Trouble::before_commit)
    }
}
