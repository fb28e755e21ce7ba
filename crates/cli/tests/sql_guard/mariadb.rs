//! A private `MariaDB`.

use std::path::PathBuf;

use rustix::process::Signal;

use crate::{
    database::{Database, Holder, Outcome},
    server::{Home, Server, command, find, run},
    session::{Client, Failure, Session},
};

#[derive(Debug)]
pub(crate) struct Mariadb {
    // Ends before its folder goes.
    _server: Server,
    pub(crate) home: Home,
}

impl Mariadb {
    /// A server with the database `shop`, empty.
    pub(crate) fn bare() -> Mariadb {
        let home = Home::of("nobody");
        let data = home.path().join("data");
        let mut install = home.command(&program("mariadb-install-db"));
        install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
        install.args(["--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=8M"]);
        install.arg(format!("--datadir={}", data.display()));
        run(install);

        let mut mariadbd = home.command(&program("mariadbd"));
        mariadbd.args(["--no-defaults", "--skip-networking", "--innodb-log-file-size=8M"]);
        mariadbd.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M"]);
        mariadbd.arg(format!("--datadir={}", data.display()));
        mariadbd.arg(format!("--socket={}", home.path().join("socket").display()));
        mariadbd.arg(format!("--pid-file={}", home.path().join("pid").display()));
        let server = Server::start(mariadbd, "ready for connections", Signal::KILL);
        let mariadb = Mariadb { _server: server, home };
        mariadb.connect("root", "mysql").rows("CREATE DATABASE shop;");
        mariadb
    }

    /// With the kit, and the customer's tables.
    pub(crate) fn start() -> Mariadb {
        let mariadb = Mariadb::bare();
        let mut owner = mariadb.session("");
        owner.rows(mariadb.kit());
        owner.rows(
            "CREATE TABLE exports (name VARCHAR(99) PRIMARY KEY, written_by BIGINT NOT NULL); \
             CREATE TABLE writes (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(99), \
                 number BIGINT);",
        );
        mariadb
    }

    pub(crate) fn connect(&self, user: &str, database: &str) -> Session {
        let mut mariadb = command("mariadb");
        mariadb.args(["--no-defaults", "--batch", "--skip-column-names", "--force"]);
        mariadb.args(["--unbuffered", "--skip-reconnect", "--user", user, database]);
        mariadb.arg(format!("--socket={}", self.home.path().join("socket").display()));
        Session::start(Client::Mariadb, mariadb)
    }
}

/// Debian keeps the server out of an ordinary user's path.
fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    find(folders.map(|folder| folder.join(name)).collect::<Vec<_>>())
}

impl Database for Mariadb {
    fn session(&self, set: &str) -> Session {
        let mut session = self.connect("root", "shop");
        session.rows(set);
        session
    }

    fn waiting(&self, monitor: &mut Session) -> Option<usize> {
        // The same that information_schema.innodb_trx tells, which answers from a copy that is
        // renewed only when nobody has looked for a tenth of a second.
        let rows = monitor.rows("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits';");
        let (_, count) = rows[0].split_once('\t').expect("name and value");
        Some(count.parse().expect("a count"))
    }

    fn begin(&self) -> &'static str {
        "START TRANSACTION;"
    }

    fn guard_of(&self, resource: &str, number: &str, lease: &str, kind: &str) -> String {
        format!("CALL palisade_guard({resource}, {number}, {lease}, {kind});")
    }

    fn raise(&self, resource: &str, holder: Holder) -> String {
        let Holder { number, lease } = holder;
        format!("CALL palisade_raise('{resource}', {number}, '{lease}', 'grants');")
    }

    fn reset(&self, resource: &str, number: &str, kind: &str) -> String {
        format!("CALL palisade_reset({resource}, {number}, {kind});")
    }

    fn kit(&self) -> &'static str {
        include_str!("../../src/commands/sql_guard/mysql.sql")
    }

    fn meaning(&self, failure: &Failure) -> Option<Outcome> {
        // Deadlock, lock wait timeout, record changed since it was read.
        let again = ["ERROR 1213 ", "ERROR 1205 ", "ERROR 1020 "];
        again.iter().any(|code| failure.text.starts_with(code)).then_some(Outcome::Again)
    }
}
