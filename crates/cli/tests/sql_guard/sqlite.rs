//! An `SQLite` database in a temporary folder.

use tempfile::TempDir;

use crate::{
    database::{Database, Holder, Outcome},
    server::command,
    session::{Client, Failure, Session},
};

#[derive(Debug)]
pub(crate) struct Sqlite {
    pub(crate) dir: TempDir,
    begin: &'static str,
}

impl Sqlite {
    /// The folder of a database that is not there yet.
    pub(crate) fn bare() -> Sqlite {
        Sqlite { dir: tempfile::tempdir().expect("a folder"), begin: "BEGIN IMMEDIATE;" }
    }

    /// With the kit, and the customer's tables.
    pub(crate) fn start() -> Sqlite {
        Sqlite::with("DELETE", "BEGIN IMMEDIATE;")
    }

    /// With this journal, and transactions that begin so.
    pub(crate) fn with(journal: &str, begin: &'static str) -> Sqlite {
        let sqlite = Sqlite { begin, ..Sqlite::bare() };
        let mut owner = sqlite.session(&format!("PRAGMA journal_mode = {journal};"));
        owner.rows(sqlite.kit());
        owner.rows(
            "CREATE TABLE exports (name TEXT PRIMARY KEY, written_by INTEGER NOT NULL); \
             CREATE TABLE writes (id INTEGER PRIMARY KEY, name TEXT, number INTEGER);",
        );
        sqlite
    }
}

impl Database for Sqlite {
    fn session(&self, set: &str) -> Session {
        // Line by line also into a pipe.
        let mut sqlite3 = command("stdbuf");
        sqlite3.args(["-oL", "sqlite3", "-batch"]).arg(self.dir.path().join("shop.db"));
        let mut session = Session::start(Client::Sqlite, sqlite3);
        // First: it may say how long to wait for others, which any statement can need.
        session.rows(set);
        session.rows("PRAGMA synchronous = OFF;");
        session
    }

    fn waiting(&self, _monitor: &mut Session) -> Option<usize> {
        None
    }

    fn begin(&self) -> &'static str {
        self.begin
    }

    fn guard_of(&self, resource: &str, number: &str, lease: &str, kind: &str) -> String {
        format!(
            "INSERT INTO palisade_guard (resource, number, lease, kind) \
             VALUES ({resource}, {number}, {lease}, {kind});"
        )
    }

    fn raise(&self, resource: &str, holder: Holder) -> String {
        self.guard(resource, holder)
    }

    fn reset(&self, resource: &str, number: &str, kind: &str) -> String {
        format!(
            "INSERT INTO palisade_reset (resource, number, kind) \
             VALUES ({resource}, {number}, {kind});"
        )
    }

    fn kit(&self) -> &'static str {
        include_str!("../../src/commands/sql_guard/sqlite.sql")
    }

    fn meaning(&self, failure: &Failure) -> Option<Outcome> {
        // The same where a snapshot is older than the newest commit.
        (failure.code == "database is locked (5)").then_some(Outcome::Busy)
    }
}
