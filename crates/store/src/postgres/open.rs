//! Opening: the schema, the connections, the tasks that run beside the requests.

use std::{sync::Arc, sync::atomic::AtomicU64};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use palisade_core::clock::Clock;

use crate::fault::Fault;

use super::{
    address::{Address, AddressError, Connector, Purpose},
    clock::{DatabaseClock, TimeSource},
    engine::Engine,
    identity, life,
    news::News,
    trouble::Trouble,
    values::fault,
};

mod migrations {
    refinery::embed_migrations!("migrations/postgres");
}

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

/// The engine of a database whose schema is up to date.
pub(super) async fn engine(options: &PostgresOptions) -> Result<Engine, OpenError> {
    let place = options.address.shown();
    let database = |source| OpenError::Database { place: place.clone(), source };
    migrate(&options.address).await?;
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
        other => Fault::Engine(other.failure().to_string().into()),
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

/// Brings the schema up to date, one server at a time. A schema that is one step ahead is used as
/// it is: each migration leaves what the version before it needs, so that servers can be replaced
/// one by one.
async fn migrate(address: &Address) -> Result<(), OpenError> {
    let place = address.shown();
    let database = |source| OpenError::Database { place: place.clone(), source };
    let connected = address.connect(Purpose::Write).await;
    let (mut client, connection) = connected.map_err(fault).map_err(database)?;
    let driver = tokio::spawn(connection);
    let migrated = async {
        if let Some(why) = identity::takes_no_writes(&client).await.map_err(database)? {
            return Err(OpenError::ReadOnly { place: place.clone(), why });
        }
        // Held until the connection ends, which is when this function does.
        let alone = format!(
            "SET lock_timeout = '60s'; SET client_min_messages = warning; \
             SELECT pg_advisory_lock({})",
            life::LIFE_LOCK + 1
        );
        client.batch_execute(&alone).await.map_err(fault).map_err(database)?;
        let schema = |source| OpenError::Schema { place: place.clone(), source: Box::new(source) };
        let runner = migrations::migrations::runner().set_abort_missing(false);
        let known = known_version();
        let found = version(&client).await.map_err(database)?;
        if found > known + 1 {
            return Err(OpenError::TooNew { place: place.clone(), found, known });
        }
        if found > known {
            tracing::warn!(found, known, "a newer version has the schema");
            return Ok(());
        }
        runner.run_async(&mut client).await.map(drop).map_err(schema)
    };
    let migrated = migrated.await;
    drop(client);
    let _ = driver.await;
    migrated
}

/// The newest version of the schema that is known here.
fn known_version() -> i64 {
    let runner = migrations::migrations::runner();
    let versions = runner.get_migrations().iter().map(refinery::Migration::version);
    i64::from(versions.max().unwrap_or(0))
}

/// Whether the schema that is there can be read: as known here, or one step ahead.
pub(super) async fn readable(
    client: &tokio_postgres::Client,
    place: &str,
) -> Result<(), OpenError> {
    let place = place.to_owned();
    let (known, found) = (known_version(), version(client).await);
    match found {
        Err(source) => Err(OpenError::Database { place, source }),
        Ok(found) if found > known + 1 => Err(OpenError::TooNew { place, found, known }),
        Ok(found) if found < known => Err(OpenError::TooOld { place, found, known }),
        Ok(_) => Ok(()),
    }
}

/// The version of the schema that is there; 0 for none.
async fn version(client: &tokio_postgres::Client) -> Result<i64, Fault> {
    let there = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    if !client.query_one(there, &[]).await.map_err(fault)?.get::<_, bool>(0) {
        return Ok(0);
    }
    let newest = "SELECT coalesce(max(version), 0)::bigint FROM refinery_schema_history";
    client.query_one(newest, &[]).await.map(|row| row.get(0)).map_err(fault)
}

/// Raises the counter of a store by hand, where a loss could not be noticed. Answers where it
/// stands.
pub async fn raise_tokens(options: &PostgresOptions, by: u64) -> Result<u64, OpenError> {
    let place = options.address.shown();
    let database = |source| OpenError::Database { place: place.clone(), source };
    let engine = engine(options).await?;
    let client = engine.writer().await.map_err(|trouble| database(as_fault(trouble)))?;
    // Alone, or a number that is drawn meanwhile could be drawn again.
    let failed = |trouble| database(as_fault(trouble));
    life::begin_alone(&client).await.map_err(failed)?;
    let raised = identity::raise_by(&client, by).await;
    let (raised, done) = match raised {
        Ok(standing) => (standing, Ok(())),
        Err(fault) => (0, Err(fault)),
    };
    life::end_alone(&client, done).await.map_err(failed)?;
    Ok(raised)
}
