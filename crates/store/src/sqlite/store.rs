//! The store over the engine: a writer's thread, readers beside it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::AtomicU64,
        mpsc::{self, Sender},
    },
    thread::JoinHandle,
};

use async_trait::async_trait;
use palisade_core::{LockName, Timestamp, clock::Clock};
use rusqlite::Connection;
use tokio::sync::{Semaphore, broadcast, oneshot};

use crate::{
    artefacts::Moved,
    command::{Answer, Command},
    events::{Announcer, Batch},
    failure::Failure,
    fault::Fault,
    query::{Query, View},
    store::Store,
};

use super::{
    clock::StoreClock,
    engine::SqliteEngine,
    high_water,
    open::{self, OpenError, Place},
    reading,
    renewals::Renewals,
    values::fault,
    writer::{Request, Writer},
};

/// Most readers at once; more wait. Reading takes a connection, a thread and a little memory.
const READERS_MAX: usize = 4;

/// A store in a data folder of this process alone.
#[derive(Debug)]
pub struct SqliteStore {
    /// Gone once the store is being dropped.
    requests: Option<Sender<Request>>,
    writer: Option<JoinHandle<()>>,
    announcer: Announcer,
    clock: Arc<StoreClock>,
    readers: Arc<Readers>,
    /// Ends after the writer.
    _high_water: high_water::Keeper,
}

/// Connections that only read.
#[derive(Debug)]
struct Readers {
    folder: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
    renewals: Arc<Renewals>,
}

impl SqliteStore {
    /// Opens the store of a data folder, made if it is missing. Blocks for as long as that takes.
    ///
    /// The clock counts suspended time; the store's own goes on from the later of it and the last
    /// instant recorded. Dropping the store waits for what is being written.
    pub fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let clock_then = clock.now();
        let mut engine = SqliteEngine::open(Place::Folder(folder.to_owned()), clock_then)?;
        let clock = Arc::new(StoreClock::new(clock, engine.clock(), clock_then));
        let renewals = Arc::new(Renewals::default());
        renewals.follow(engine.take_changed_leases());
        let announcer = Announcer::default();
        let counter = Arc::new(AtomicU64::new(engine.counter().get()));
        let failed = |source| OpenError::Folder { folder: folder.to_owned(), source };
        let high_water = high_water::Keeper::start(folder.to_owned(), Arc::clone(&counter));
        let writer = Writer {
            engine,
            clock: Arc::clone(&clock),
            announcer: announcer.clone(),
            renewals: Arc::clone(&renewals),
            counter,
        };
        let (sender, receiver) = mpsc::channel();
        let named = std::thread::Builder::new().name("palisade-writer".to_owned());
        let handle = named.spawn(move || writer.serve(&receiver)).map_err(failed)?;
        let readers = Readers {
            folder: folder.to_owned(),
            idle: Mutex::new(Vec::new()),
            places: Arc::new(Semaphore::new(READERS_MAX)),
            renewals,
        };
        Ok(Self {
            requests: Some(sender),
            writer: Some(handle),
            announcer,
            clock,
            readers: Arc::new(readers),
            _high_water: high_water.map_err(failed)?,
        })
    }
}

impl SqliteStore {
    /// The store's own name, random.
    pub fn id(&self) -> Result<String, Failure> {
        self.meta("SELECT store_id FROM meta", [])
    }

    /// The place for artefacts that the store belongs to, by the place's own name: the given one,
    /// if the store knew none or it was moved. Blocks until it is on the disk.
    pub fn bind_artefacts(&self, place: &str, moved: Moved) -> Result<String, Failure> {
        let sql = match moved {
            Moved::No => "UPDATE meta SET artefacts = coalesce(artefacts, ?1) RETURNING artefacts",
            Moved::Yes => "UPDATE meta SET artefacts = ?1 RETURNING artefacts",
        };
        self.meta(sql, [place])
    }

    /// Asks the row about the store itself, on a connection of its own beside the writer's.
    fn meta(&self, sql: &str, values: impl rusqlite::Params) -> Result<String, Failure> {
        let ask = || -> rusqlite::Result<String> {
            let connection = open::aside(&self.readers.folder)?;
            connection.query_row(sql, values, |row| row.get(0))
        };
        ask().map_err(|error| Failure::Unavailable(fault(error).to_string()))
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer ends when its channel does; whoever opens the folder next finds it free.
        self.requests = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer's thread panicked");
        }
    }
}

impl Readers {
    fn query(&self, query: &Query) -> Result<View, Fault> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::reader(&self.folder)?,
        };
        // One transaction, so that all that is read is of one moment.
        let transaction = connection.unchecked_transaction().map_err(fault)?;
        let renewed = |token| self.renewals.get(token);
        let locks = |name: &LockName| self.renewals.held_lock(name);
        let memory = reading::Memory { renewed: &renewed, locks: &locks };
        let view = reading::query(&transaction, query, memory);
        transaction.finish().map_err(fault)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        view
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn execute(&self, commands: Vec<Command>) -> Vec<Result<Answer, Failure>> {
        let count = commands.len();
        let (reply, answers) = oneshot::channel();
        let request = Request { commands, reply };
        let requests = self.requests.as_ref().expect("there until it is dropped");
        if requests.send(request).is_err() {
            let stopped = Failure::Unavailable("the store has stopped".to_owned());
            return vec![Err(stopped); count];
        }
        answers.await.unwrap_or_else(|_| {
            let stopped = Failure::Unknown("the store stopped meanwhile".to_owned());
            vec![Err(stopped); count]
        })
    }

    async fn query(&self, query: Query) -> Result<View, Failure> {
        let unavailable = |what: String| Failure::Unavailable(what);
        let places = Arc::clone(&self.readers.places);
        let place = places.acquire_owned().await.map_err(|e| unavailable(e.to_string()))?;
        let readers = Arc::clone(&self.readers);
        let read = tokio::task::spawn_blocking(move || {
            let view = readers.query(&query);
            drop(place);
            view
        });
        let view = read.await.map_err(|error| unavailable(error.to_string()))?;
        view.map_err(|fault| unavailable(fault.to_string()))
    }

    fn changes(&self) -> broadcast::Receiver<Batch> {
        self.announcer.listen()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
