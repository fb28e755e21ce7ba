//! A private `PostgreSQL`.

use std::path::PathBuf;

use rustix::process::Signal;

use crate::{
    database::{Database, Holder, Outcome},
    server::{Home, Server, command, find, run},
    session::{Client, Failure, Session},
};

/// The levels that the guard is tested at.
pub(crate) const READ_COMMITTED: &str = "READ COMMITTED";
pub(crate) const REPEATABLE_READ: &str = "REPEATABLE READ";
pub(crate) const SERIALIZABLE: &str = "SERIALIZABLE";

#[derive(Debug)]
pub(crate) struct Postgres {
    // Ends before its folder goes.
    _server: Server,
    pub(crate) home: Home,
}

impl Postgres {
    /// A server with the database `shop`, empty.
    pub(crate) fn bare() -> Postgres {
        let home = Home::of("postgres");
        let (data, socket) = (home.path().join("data"), home.path().display().to_string());
        let mut initdb = home.command(&program("initdb"));
        initdb.arg("-D").arg(&data);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        run(initdb);

        let mut postgres = home.command(&program("postgres"));
        postgres.arg("-D").arg(&data).args(["-k", &socket]);
        for setting in ["listen_addresses=", "fsync=off", "shared_buffers=16MB", "autovacuum=off"] {
            postgres.args(["-c", setting]);
        }
        let server = Server::start(postgres, "ready to accept connections", Signal::QUIT);
        let postgres = Postgres { _server: server, home };
        postgres.connect("postgres", "postgres").rows("CREATE DATABASE shop;");
        postgres
    }

    /// With the kit, and the customer's tables.
    pub(crate) fn start() -> Postgres {
        let postgres = Postgres::bare();
        let mut owner = postgres.session("");
        owner.rows(postgres.kit());
        owner.rows(
            "CREATE TABLE exports (name text PRIMARY KEY, written_by bigint NOT NULL); \
             CREATE TABLE writes (id bigserial PRIMARY KEY, name text, number bigint);",
        );
        postgres
    }

    pub(crate) fn connect(&self, user: &str, database: &str) -> Session {
        let mut psql = command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "VERBOSITY=verbose", "-U", user, "-d", database])
            .arg("-h")
            .arg(self.home.path());
        Session::start(Client::Psql, psql)
    }
}

/// Debian keeps the server's programs out of the path.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = versions.map(|version| version.path().join("bin").join(name)).collect();
    found.sort();
    found.reverse();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path).map(|folder| folder.join(name)));
    find(found)
}

pub(crate) fn isolation(level: &str) -> String {
    format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level};")
}

impl Database for Postgres {
    fn session(&self, set: &str) -> Session {
        let mut session = self.connect("postgres", "shop");
        session.rows(set);
        session
    }

    fn waiting(&self, monitor: &mut Session) -> Option<usize> {
        let rows =
            monitor.rows("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock';");
        Some(rows[0].parse().expect("a count"))
    }

    fn begin(&self) -> &'static str {
        "BEGIN;"
    }

    fn guard_of(&self, resource: &str, number: &str, lease: &str, kind: &str) -> String {
        format!("SELECT palisade_guard({resource}, {number}, {lease}, {kind});")
    }

    fn raise(&self, resource: &str, holder: Holder) -> String {
        let Holder { number, lease } = holder;
        format!("SELECT palisade_raise('{resource}', {number}, '{lease}', 'grants');")
    }

    fn reset(&self, resource: &str, number: &str, kind: &str) -> String {
        format!("SELECT palisade_reset({resource}, {number}, {kind});")
    }

    fn kit(&self) -> &'static str {
        include_str!("../../src/commands/sql_guard/postgres.sql")
    }

    fn meaning(&self, failure: &Failure) -> Option<Outcome> {
        ["40001", "40P01"].contains(&failure.code.as_str()).then_some(Outcome::Again)
    }
}
