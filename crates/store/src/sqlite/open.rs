//! Opening: the folder, its lock, the connection and its schema.

use std::{
    fs::{File, OpenOptions, Permissions},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use palisade_core::Invalid;
use rusqlite::{Connection, OpenFlags};

use crate::fault::Fault;

const FILE_NAME: &str = "palisade.db";
/// Who may read and write it.
const MODE: u32 = 0o600;

/// Pages of the log before they are copied to the database: 32 MiB. Seldom, because a hot page is
/// copied once for all its changes in between.
const CHECKPOINT_PAGES: u32 = 8_192;
/// Most statements there are, with room to spare: none is ever prepared twice.
const STATEMENTS_MAX: usize = 128;

mod migrations {
    refinery::embed_migrations!("migrations/sqlite");
}

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it: be its client, or end it first.
    #[error("{folder} is in use by another process{}", shown_pid(*pid))]
    InUse {
        /// The data folder.
        folder: PathBuf,
        /// The process that has it, where it left its id.
        pid: Option<u32>,
    },
    /// There is no store in the folder, and none was to be made.
    #[error("there is no store in {folder}: it has no {FILE_NAME} with records in it")]
    NoStore {
        /// The folder.
        folder: PathBuf,
    },
    /// A value of an operator's that is not allowed.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The folder could not be made, read or written.
    #[error("the data folder {folder} cannot be used")]
    Folder {
        /// The data folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database's schema could not be brought up to date. A newer version may have written it.
    #[error("the schema of {place} cannot be brought up to date")]
    Schema {
        /// The database.
        place: String,
        /// What went wrong.
        source: Box<refinery::Error>,
    },
    /// The database could not be opened or read.
    #[error("the database {place} cannot be opened")]
    Database {
        /// The database.
        place: String,
        /// What went wrong.
        source: Fault,
    },
}

fn shown_pid(pid: Option<u32>) -> String {
    pid.map(|pid| format!(", pid {pid}")).unwrap_or_default()
}

/// Where an engine keeps its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In memory: gone with the engine.
    Memory,
    /// In a data folder, made if it is missing.
    Folder(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => formatter.write_str("in memory"),
            Self::Folder(folder) => folder.join(FILE_NAME).display().fmt(formatter),
        }
    }
}

/// Makes the folder, so that its name survives a power cut.
pub(super) fn make_folder(folder: &Path) -> Result<(), OpenError> {
    let make = || {
        std::fs::create_dir_all(folder)?;
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    };
    make().map_err(|source| OpenError::Folder { folder: folder.to_owned(), source })
}

/// Makes the database its owner's alone: it holds the secrets that sign notifications. SQLite
/// gives the log and its index the database's own mode.
fn restrict(folder: &Path) -> Result<(), OpenError> {
    let restrict = || {
        let database = folder.join(FILE_NAME);
        OpenOptions::new().create(true).append(true).mode(MODE).open(&database)?;
        for name in [FILE_NAME.to_owned(), format!("{FILE_NAME}-wal"), format!("{FILE_NAME}-shm")] {
            match std::fs::set_permissions(folder.join(name), Permissions::from_mode(MODE)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    };
    restrict().map_err(|source| OpenError::Folder { folder: folder.to_owned(), source })
}

/// Opens the writer's connection, its schema up to date.
pub(super) fn writer(place: &Place) -> Result<Connection, OpenError> {
    if let Place::Folder(folder) = place {
        restrict(folder)?;
    }
    let database = |source| OpenError::Database { place: place.to_string(), source };
    let open = || -> rusqlite::Result<Connection> {
        let connection = match place {
            Place::Memory => Connection::open_in_memory()?,
            Place::Folder(folder) => Connection::open(folder.join(FILE_NAME))?,
        };
        connection.pragma_update(None, "journal_mode", "wal")?;
        // Every commit is on the disk before it is answered.
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        // After a checkpoint the log shrinks to this again, in bytes.
        connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
        // In KiB where negative: 16 MiB. A commit may have to look through all of it, and what is
        // not in it is most likely in the system's.
        connection.pragma_update(None, "cache_size", -16 * 1024)?;
        connection.pragma_update(None, "temp_store", "memory")?;
        // Somebody may look with other tools; they must not hold us up for long.
        connection.busy_timeout(std::time::Duration::from_secs(2))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        Ok(connection)
    };
    let mut connection = open().map_err(super::values::fault).map_err(database)?;
    migrations::migrations::runner().run(&mut connection).map_err(|source| OpenError::Schema {
        place: place.to_string(),
        source: Box::new(source),
    })?;
    Ok(connection)
}

/// Opens a connection that only reads.
pub(super) fn reader(folder: &Path) -> Result<Connection, Fault> {
    let open = || -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(folder.join(FILE_NAME), flags)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cache_size", -8 * 1024)?;
        connection.busy_timeout(std::time::Duration::from_secs(2))?;
        Ok(connection)
    };
    open().map_err(super::values::fault)
}

/// Opens a connection for a small write beside the writer's own.
pub(super) fn aside(folder: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join(FILE_NAME), flags)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    Ok(connection)
}

/// Refuses a folder without records. Nothing is made.
pub(super) fn must_be_there(folder: &Path) -> Result<(), OpenError> {
    let missing = || OpenError::NoStore { folder: folder.to_owned() };
    if !folder.join(FILE_NAME).is_file() {
        return Err(missing());
    }
    let place = || Place::Folder(folder.to_owned()).to_string();
    let database = |source| OpenError::Database { place: place(), source };
    let connection = looker(folder).map_err(database)?;
    let records = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'";
    let counted = connection.query_row(records, [], |row| row.get::<_, i64>(0));
    let counted = counted.map_err(super::values::fault).map_err(database)?;
    if counted == 0 { Err(missing()) } else { Ok(()) }
}

/// Opens a connection that cannot write, whoever else has the folder.
pub(super) fn looker(folder: &Path) -> Result<Connection, Fault> {
    let open = || -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(folder.join(FILE_NAME), flags)?;
        connection.busy_timeout(std::time::Duration::from_secs(2))?;
        Ok(connection)
    };
    open().map_err(super::values::fault)
}
