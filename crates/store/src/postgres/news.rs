//! The journal's news to whoever listens in this process, in the journal's order, whichever server
//! committed them. What we committed ourselves is told at once; what others did is read from the
//! journal when they notify, and every second in case a notification was lost.
//!
//! One notification covers all commits since the last, comes from a connection of its own, and is
//! sent only while other servers are there: in each transaction it costs most of the throughput,
//! because commits that notify wait for each other.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use palisade_core::history::Event;
use tokio::sync::{Notify, broadcast};
use tokio_postgres::AsyncMessage;

use crate::{
    events::{Announcer, Batch},
    fault::Fault,
};

use super::{
    address::{Address, Purpose},
    engine::Engine,
    reading,
    values::fault,
};

/// How often the journal is read though nobody said that there is something.
const POLL: Duration = Duration::from_secs(1);
/// How long the notifications of a burst are gathered.
const COALESCE: Duration = Duration::from_millis(3);
/// How long a neighbour's commit may be on its way before its entries are read from the journal.
const GRACE: Duration = Duration::from_millis(2);
/// Before a connection that broke is made again.
const AGAIN: Duration = Duration::from_millis(500);
/// Entries that are read at once.
const ENTRIES_AT_ONCE: usize = 1_000;

/// What was told, and what waits for its turn.
#[derive(Debug, Default)]
struct Told {
    /// The last position told.
    last: u64,
    /// Our own commits that came before their turn, by the position before them.
    early: BTreeMap<u64, Vec<Event>>,
}

/// Tells listeners what was committed.
#[derive(Debug, Default)]
pub(super) struct News {
    announcer: Announcer,
    told: Mutex<Told>,
    /// There may be something to read.
    look: Notify,
    /// Others should look.
    tell_others: Notify,
    /// Notifications are to be had elsewhere.
    elsewhere: Notify,
    /// Whether other servers are there.
    pub(super) others: AtomicBool,
}

impl News {
    /// Listens from now on.
    pub(super) fn listen(&self) -> broadcast::Receiver<Batch> {
        self.announcer.listen()
    }

    /// The last position told.
    pub(super) fn position(&self) -> u64 {
        self.told().last
    }

    /// The journal ends here: nothing before it is told.
    pub(super) fn begin(&self, position: u64) {
        let mut told = self.told();
        told.last = told.last.max(position);
    }

    /// The journal may be another one, which ends here: whoever listens looks for itself.
    pub(super) fn restored(&self, position: u64) {
        *self.told() = Told { last: position, early: BTreeMap::new() };
        self.announcer.announce_gap();
    }

    /// The database that notified takes no writes any more.
    pub(super) fn look_elsewhere(&self) {
        self.elsewhere.notify_one();
    }

    /// Entries of our own were committed, after a position.
    pub(super) fn committed(&self, before: u64, events: Vec<Event>) {
        {
            let mut told = self.told();
            if before >= told.last {
                told.early.insert(before, events);
            }
            self.tell_in_turn(&mut told);
            if !told.early.is_empty() {
                self.look.notify_one();
            }
        }
        if self.others.load(Ordering::Relaxed) {
            self.tell_others.notify_one();
        }
    }

    fn tell_in_turn(&self, told: &mut Told) {
        while let Some(next) = told.early.first_entry() {
            if *next.key() > told.last {
                return;
            }
            let (before, events) = next.remove_entry();
            if before == told.last {
                told.last += events.len() as u64;
                self.announcer.announce(events);
            }
        }
    }

    /// Entries that were read, each with its position, without gaps.
    fn read(&self, entries: Vec<(u64, Event)>) {
        let mut told = self.told();
        let last = told.last;
        let new: Vec<_> = entries.into_iter().filter(|(position, _)| *position > last).collect();
        if let Some((position, _)) = new.last() {
            told.last = *position;
            self.announcer.announce(new.into_iter().map(|(_, event)| event).collect());
        }
        self.tell_in_turn(&mut told);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what others committed, for as long as the process runs.
pub(super) async fn follow(engine: Arc<Engine>) {
    loop {
        let poll = tokio::time::sleep(POLL);
        tokio::select! {
            () = engine.news.look.notified() => tokio::time::sleep(GRACE).await,
            () = poll => {}
        }
        if let Err(fault) = catch_up(&engine).await {
            tracing::warn!(%fault, "the journal cannot be read now");
            tokio::time::sleep(AGAIN).await;
        }
    }
}

async fn catch_up(engine: &Engine) -> Result<(), Fault> {
    loop {
        let after = engine.news.position();
        let client = engine
            .reader()
            .await
            .map_err(|trouble| Fault::Engine(format!("no connection: {trouble:?}").into()))?;
        let entries = reading::events(&client, after, ENTRIES_AT_ONCE).await?;
        drop(client);
        if entries.is_empty() {
            return Ok(());
        }
        engine.news.read(entries);
    }
}

/// Hears what other servers notify, and notifies them, along a connection of its own.
pub(super) async fn hear(engine: Arc<Engine>, address: Address) {
    loop {
        if let Err(fault) = hear_once(&engine, &address).await {
            tracing::warn!(%fault, "not notified for a moment; the journal is looked at instead");
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn hear_once(engine: &Engine, address: &Address) -> Result<(), Fault> {
    let (client, mut connection) = address.connect(Purpose::Write).await.map_err(fault)?;
    let heard = std::future::poll_fn(|context| {
        loop {
            match std::task::ready!(connection.poll_message(context)) {
                Some(Ok(AsyncMessage::Notification(_))) => engine.news.look.notify_one(),
                Some(Ok(_)) => {}
                Some(Err(error)) => return std::task::Poll::Ready(Err(fault(error))),
                None => return std::task::Poll::Ready(Ok(())),
            }
        }
    });
    let tell = async {
        // Nothing of a notification has to survive a crash.
        let listen = "SET synchronous_commit = off; LISTEN palisade";
        client.batch_execute(listen).await.map_err(fault)?;
        loop {
            engine.news.tell_others.notified().await;
            client.batch_execute("NOTIFY palisade").await.map_err(fault)?;
            tokio::time::sleep(COALESCE).await;
        }
    };
    tokio::select! {
        ended = heard => ended,
        failed = tell => failed,
        () = engine.news.elsewhere.notified() => Ok(()),
    }
}

#[cfg(test)]
mod tests;
