//! Opening: the connections, the tasks that run beside the requests.

use std::{sync::Arc, sync::atomic::AtomicU64};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use palisade_core::{Invalid, clock::Clock};

use crate::fault::Fault;

use super::{
    address::{Address, AddressError, Connector, Purpose},
    clock::{DatabaseClock, TimeSource},
    engine::Engine,
    identity, life,
    news::News,
    schema::{self, Missing},
    trouble::{self, Trouble},
    values::fault,
};

/// How long a request waits for a connection.
const WAIT: std::time::Duration = std::time::Duration::from_secs(10);

/// Where the store is, and how it is used.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Where the database is.
    pub address: Address,
    /// The machine's clock, which counts suspended time.
    pub clock: Arc<dyn Clock>,
    /// Whose clock counts deadlines.
    pub time: TimeSource,
    /// How many batches run at once.
    pub writers: usize,
    /// How many queries run at once.
    pub readers: usize,
}

impl PostgresOptions {
    /// As it is used in production.
    pub fn new(address: Address, clock: Arc<dyn Clock>) -> Self {
        Self { address, clock, time: TimeSource::Database, writers: 4, readers: 4 }
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its URL is wrong.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// What is in the database is not Palisade's. Nothing was changed.
    #[error(
        "the database {place} belongs to another application (or is damaged): give Palisade one of \
         its own"
    )]
    Foreign {
        /// The database.
        place: String,
    },
    /// The database has no store, and none was to be made.
    #[error("there is no store in the database {place}")]
    NoStore {
        /// The database.
        place: String,
    },
    /// A value of an operator's that is not allowed.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The schema could not be brought up to date.
    #[error("the schema of {place} cannot be brought up to date")]
    Schema {
        /// The database.
        place: String,
        /// What went wrong.
        source: Box<refinery::Error>,
    },
    /// A newer version has the schema, by more than one step.
    #[error(
        "the schema of {place} is at version {found}, and this server knows {known}: servers may \
         be one version behind, no more"
    )]
    TooNew {
        /// The database.
        place: String,
        /// The schema's version.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// The schema is not there, or older than what is to be read.
    #[error(
        "the schema of {place} is at version {found}, and this program reads {known}: a server of \
         its own version brings it up to date"
    )]
    TooOld {
        /// The database.
        place: String,
        /// The schema's version; 0: there is none.
        found: i64,
        /// The one that is read here.
        known: i64,
    },
    /// Nothing can be written there now.
    #[error(
        "the database {place} takes no writes: {why}; wait until one of its hosts does, or promote \
         a standby"
    )]
    ReadOnly {
        /// The database.
        place: String,
        /// Whether it is a standby, or was set so.
        why: &'static str,
    },
    /// The database could not be reached or read.
    #[error("the database {place} cannot be used")]
    Database {
        /// The database.
        place: String,
        /// What went wrong.
        source: Fault,
    },
}

impl OpenError {
    /// Whether the database may well be there later: it could not be reached, or is just starting.
    pub fn is_away(&self) -> bool {
        match self {
            Self::Database { source, .. } => trouble::is_away(source),
            Self::Schema { source, .. } => trouble::is_away(&**source),
            _ => false,
        }
    }
}

/// The engine of a database, which is given a store if it has none.
pub(super) async fn engine(options: &PostgresOptions) -> Result<Engine, OpenError> {
    engine_of(options, Missing::Made).await
}

/// The engine of a database, its schema brought up to date.
async fn engine_of(options: &PostgresOptions, missing: Missing) -> Result<Engine, OpenError> {
    let place = options.address.shown();
    let database = |source| OpenError::Database { place: place.clone(), source };
    schema::migrate(&options.address, missing).await?;
    let pool = |size| pool(&options.address, Purpose::Write, size).map_err(&database);
    let engine = Engine {
        writers: pool(options.writers)?,
        readers: pool(options.readers)?,
        clock: DatabaseClock::new(Arc::clone(&options.clock), options.time),
        highest: AtomicU64::new(0),
        news: News::default(),
        known: identity::Known::default(),
    };
    start(&engine).await.map_err(|trouble| database(as_fault(trouble)))?;
    Ok(engine)
}

/// Before anything is served: which cluster it is, whether anybody served until now, what time it
/// is, where the journal ends.
async fn start(engine: &Engine) -> Result<(), Trouble> {
    let client = engine.writer().await?;
    life::begin_alone(&client).await?;
    let done = engine.mind(&client, life::Cause::Gap(life::START_GAP_MS)).await;
    life::end_alone(&client, done).await?;
    let row = client.query_one(super::records::journal::POSITION, &[]).await;
    let row = row.map_err(Trouble::before_commit)?;
    let position = super::values::Columns::new("head", &row).unsigned(0);
    engine.news.begin(position.map_err(Trouble::Fault)?);
    Ok(())
}

/// A name for this server among the others, that no other has.
pub(super) async fn server_id(engine: &Engine) -> Result<String, OpenError> {
    let failed = |source| OpenError::Database { place: "of the store".to_owned(), source };
    let client = engine.reader().await.map_err(|trouble| failed(as_fault(trouble)))?;
    let row = client.query_one("SELECT gen_random_uuid()::text", &[]).await;
    row.map(|row| row.get(0)).map_err(|error| failed(fault(error)))
}

fn as_fault(trouble: Trouble) -> Fault {
    match trouble {
        Trouble::Fault(fault) => fault,
        other => Fault::Engine(other.failure().into()),
    }
}

pub(super) fn pool(address: &Address, purpose: Purpose, size: usize) -> Result<Pool, Fault> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let connector = Connector { address: address.clone(), purpose };
    let manager = Manager::from_connect(address.config.clone(), connector, recycling);
    let built = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(WAIT))
        .create_timeout(Some(WAIT + address.more_time()))
        .build();
    built.map_err(|error| Fault::Engine(error.into()))
}

/// Raises the counter of a store by hand, where a loss could not be noticed. Answers where it
/// stands. A store must be there: none is made.
pub async fn raise_tokens(options: &PostgresOptions, by: u64) -> Result<u64, OpenError> {
    let place = options.address.shown();
    let database = |source| OpenError::Database { place: place.clone(), source };
    let engine = engine_of(options, Missing::Refused).await?;
    let client = engine.writer().await.map_err(|trouble| database(as_fault(trouble)))?;
    // Alone, or a number that is drawn meanwhile could be drawn again.
    let failed = |trouble| database(as_fault(trouble));
    life::begin_alone(&client).await.map_err(failed)?;
    let raised = identity::raise_by(&client, by).await;
    let (raised, done) = match raised {
        Ok(standing) => (standing, Ok(())),
        Err(fault) => (Ok(0), Err(fault)),
    };
    life::end_alone(&client, done).await.map_err(failed)?;
    Ok(raised?)
}
