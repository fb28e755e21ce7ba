//! The schema: whose it is, how far it has come, and bringing it up to date.

use tokio_postgres::{Client, error::SqlState};

use crate::fault::Fault;

use super::{
    address::{Address, Purpose},
    identity, life,
    open::OpenError,
    values::{Columns, fault},
};

mod migrations {
    refinery::embed_migrations!("migrations/postgres");
}

/// What becomes of a database that has no store yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is given one.
    Made,
    /// It is left as it is, and refused.
    Refused,
}

/// What is in a database before anything is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Nothing of ours, and nothing that has our names.
    Nothing,
    /// A schema of ours, of this version.
    Ours(i64),
    /// Tables that have our names, or a history of migrations, and are not ours.
    Foreign,
}

/// One line of the history of migrations.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Applied {
    version: i64,
    name: String,
    checksum: String,
}

/// Brings the schema up to date, one server at a time. A schema that is one step ahead is used as
/// it is: each migration leaves what the version before it needs, so that servers can be replaced
/// one by one.
///
/// Looks before it touches anything: in a database of another application nothing is left behind.
pub(super) async fn migrate(address: &Address, missing: Missing) -> Result<(), OpenError> {
    let place = address.shown();
    let database = |source| OpenError::Database { place: place.clone(), source };
    let connected = address.connect(Purpose::Write).await;
    let (mut client, connection) = connected.map_err(fault).map_err(database)?;
    let driver = tokio::spawn(connection);
    let migrated = async {
        if let Some(why) = identity::takes_no_writes(&client).await.map_err(database)? {
            return Err(OpenError::ReadOnly { place: place.clone(), why });
        }
        // Held until the connection ends, which is when this function does. A migration of many
        // rows takes as long as it takes, whatever the database's own settings are.
        let alone = format!(
            "SET lock_timeout = '60s'; SET statement_timeout = 0; \
             SET client_min_messages = warning; SELECT pg_advisory_lock({})",
            life::LIFE_LOCK + 1
        );
        client.batch_execute(&alone).await.map_err(fault).map_err(database)?;
        let place = place.clone();
        let known = known_version();
        match look(&client).await.map_err(database)? {
            Found::Foreign => return Err(OpenError::Foreign { place }),
            Found::Nothing if missing == Missing::Refused => {
                return Err(OpenError::NoStore { place });
            }
            Found::Ours(found) if found > known + 1 => {
                return Err(OpenError::TooNew { place, found, known });
            }
            Found::Ours(found) if found > known => {
                tracing::warn!(found, known, "a newer version has the schema");
                return Ok(());
            }
            Found::Nothing | Found::Ours(_) => {}
        }
        let runner = migrations::migrations::runner().set_abort_missing(false);
        let migrated = runner.run_async(&mut client).await.map(drop);
        migrated.map_err(|source| OpenError::Schema { place, source: Box::new(source) })
    };
    let migrated = migrated.await;
    drop(client);
    let _ = driver.await;
    migrated
}

/// Whether the schema that is there can be read: as known here, or one step ahead.
pub(super) async fn readable(client: &Client, place: &str) -> Result<(), OpenError> {
    let place = place.to_owned();
    let known = known_version();
    match look(client).await {
        Err(source) => Err(OpenError::Database { place, source }),
        Ok(Found::Foreign) => Err(OpenError::Foreign { place }),
        Ok(Found::Nothing) => Err(OpenError::TooOld { place, found: 0, known }),
        Ok(Found::Ours(found)) if found > known + 1 => {
            Err(OpenError::TooNew { place, found, known })
        }
        Ok(Found::Ours(found)) if found < known => Err(OpenError::TooOld { place, found, known }),
        Ok(Found::Ours(_)) => Ok(()),
    }
}

/// The newest version of the schema that is known here.
fn known_version() -> i64 {
    own_migrations().iter().map(|own| own.version).max().unwrap_or(0)
}

fn own_migrations() -> Vec<Applied> {
    let runner = migrations::migrations::runner();
    let own = |migration: &refinery::Migration| Applied {
        version: i64::from(migration.version()),
        name: migration.name().to_owned(),
        checksum: migration.checksum().to_string(),
    };
    runner.get_migrations().iter().map(own).collect()
}

/// The tables and sequences that the migrations make.
fn own_relations() -> Vec<String> {
    let runner = migrations::migrations::runner();
    let mut names = Vec::new();
    for sql in runner.get_migrations().iter().filter_map(refinery::Migration::sql) {
        for line in sql.lines() {
            let beginnings = ["CREATE TABLE ", "CREATE UNLOGGED TABLE ", "CREATE SEQUENCE "];
            let made = beginnings.into_iter().find_map(|beginning| line.strip_prefix(beginning));
            let name = made.and_then(|rest| rest.split([' ', '(']).next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

async fn look(client: &Client) -> Result<Found, Fault> {
    let there = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    if client.query_one(there, &[]).await.map_err(fault)?.get::<_, bool>(0) {
        let Some(applied) = history(client).await? else { return Ok(Found::Foreign) };
        // One without lines is what is left by a start that was broken off.
        if !applied.is_empty() {
            return Ok(whose(&applied, &own_migrations()));
        }
    }
    let taken = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = ANY($1) \
                 AND relnamespace = current_schema()::regnamespace)";
    let row = client.query_one(taken, &[&own_relations()]).await.map_err(fault)?;
    Ok(if row.get(0) { Found::Foreign } else { Found::Nothing })
}

/// The history of migrations; none if it does not look like one of ours.
async fn history(client: &Client) -> Result<Option<Vec<Applied>>, Fault> {
    let lines = "SELECT version::bigint, name::text, checksum::text FROM refinery_schema_history \
                 ORDER BY version";
    let rows = match client.query(lines, &[]).await {
        Ok(rows) => rows,
        Err(error)
            if [
                Some(&SqlState::UNDEFINED_COLUMN),
                Some(&SqlState::CANNOT_COERCE),
                Some(&SqlState::INVALID_TEXT_REPRESENTATION),
            ]
            .contains(&error.code()) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(fault(error)),
    };
    let applied = |row: &tokio_postgres::Row| {
        let columns = Columns::new("refinery_schema_history", row);
        let text = |index| columns.get::<Option<String>>(index).map(Option::unwrap_or_default);
        let version = columns.get::<Option<i64>>(0)?.unwrap_or_default();
        Ok(Applied { version, name: text(1)?, checksum: text(2)? })
    };
    rows.iter().map(applied).collect::<Result<_, Fault>>().map(Some)
}

/// Whose migrations these are. Of those that are newer than ours nothing is known; all others have
/// to be ours, and the first has to be there.
fn whose(applied: &[Applied], own: &[Applied]) -> Found {
    let known = own.iter().map(|one| one.version).max().unwrap_or(0);
    let is_ours = |one: &Applied| one.version > known || own.contains(one);
    let has_first = own.first().is_some_and(|first| applied.contains(first));
    let newest = applied.iter().map(|one| one.version).max();
    match newest {
        Some(newest) if has_first && applied.iter().all(is_ours) => Found::Ours(newest),
        _ => Found::Foreign,
    }
}

#[cfg(test)]
mod tests;
