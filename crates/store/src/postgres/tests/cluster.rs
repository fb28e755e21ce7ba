//! A private database server: in a temporary folder, on a socket of its own, as a user without
//! rights, gone with the test.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use palisade_core::clock::Clock;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::postgres::{Address, PostgresOptions, PostgresStore, TimeSource};

/// How long the server may take to come up.
const LIMIT: Duration = Duration::from_mins(1);
const READY: &str = "ready to accept connections";
const READY_TO_READ: &str = "ready to accept read-only connections";

/// A running server. Dropped, it ends.
pub(crate) struct Cluster {
    server: Option<Child>,
    home: TempDir,
    ids: Option<(u32, u32)>,
    settings: Vec<String>,
    databases: AtomicU64,
    /// What its log says last when it comes up.
    ready: &'static str,
}

impl Cluster {
    /// A server that need not survive a power cut.
    pub(crate) fn start() -> Self {
        Self::with(&["fsync=off"])
    }

    pub(crate) fn with(settings: &[&str]) -> Self {
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut cluster = Self::nowhere(settings, READY);
        let data = cluster.data();
        let mut initdb = cluster.command("initdb");
        initdb.arg("-D").arg(data);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        let output = initdb.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        cluster.go_on();
        cluster
    }

    fn nowhere(settings: Vec<String>, ready: &'static str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let ids = geteuid().is_root().then(|| ids_of("postgres"));
        if let Some((uid, gid)) = ids {
            chown(home.path(), Some(uid), Some(gid)).unwrap();
        }
        Self { server: None, home, ids, settings, databases: AtomicU64::new(0), ready }
    }

    /// A hot standby to which this one streams.
    pub(crate) fn standby(&self) -> Self {
        let mut standby = Self::nowhere(self.settings.clone(), READY_TO_READ);
        let mut backup = standby.command("pg_basebackup");
        backup.arg("-D").arg(standby.data()).arg("-h").arg(self.home.path());
        backup.args(["-U", "postgres", "-R", "-X", "stream", "-c", "fast", "--no-sync"]);
        let output = backup.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        standby.go_on();
        standby
    }

    /// Makes a standby a primary.
    pub(crate) async fn promote(&mut self) {
        assert_eq!(self.ask("postgres", "SELECT pg_promote()::text").await, "true");
        self.ready = READY;
    }

    /// Waits until a standby has all that is written here by now.
    pub(crate) async fn replicated_to(&self, standby: &Self) {
        let written = self.ask("postgres", "SELECT pg_current_wal_lsn()::text").await;
        let sql = format!("SELECT (pg_last_wal_replay_lsn() >= '{written}')::text");
        while standby.ask("postgres", &sql).await != "true" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts with this setting from the next start on.
    pub(crate) fn set(&mut self, setting: &str) {
        self.settings.push(setting.to_owned());
    }

    /// Makes a file the server's own.
    pub(crate) fn give(&self, file: &Path) {
        if let Some((uid, gid)) = self.ids {
            chown(file, Some(uid), Some(gid)).unwrap();
        }
    }

    /// A program of the server's, as the server's user.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = plain("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if let Some((uid, gid)) = self.ids {
            let (uid, gid) = (format!("--reuid={uid}"), format!("--regid={gid}"));
            command.args([uid, gid, "--clear-groups".to_owned()]);
        }
        command.arg(program(name)).current_dir(self.home.path()).stdin(Stdio::null());
        command
    }

    /// Another program.
    pub(crate) fn plain(&self, name: &str) -> Command {
        let mut command = plain(name);
        command.current_dir(self.home.path()).stdin(Stdio::null());
        command
    }

    /// Starts the server, where it is not running.
    pub(crate) fn go_on(&mut self) {
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data()).arg("-k").arg(self.home.path());
        let settings = ["listen_addresses=", "shared_buffers=64MB", "max_connections=200"];
        for setting in settings.iter().copied().chain(self.settings.iter().map(String::as_str)) {
            postgres.args(["-c", setting]);
        }
        postgres.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = postgres.spawn().unwrap();
        let log = child.stderr.take().unwrap();
        let (told, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // Read to its end: a server whose log is full stands still.
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                let _ = told.send(line);
            }
        });
        self.server = Some(child);
        loop {
            let line = lines.recv_timeout(LIMIT).expect("the server comes up");
            if line.contains(self.ready) {
                return;
            }
        }
    }

    /// Ends the server at once: what it had not logged is gone.
    pub(crate) fn stop_at_once(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = kill_process(Pid::from_child(&server), Signal::QUIT);
            let _ = server.wait();
        }
    }

    /// The address of a database.
    pub(crate) fn address(&self, database: &str) -> Address {
        let host = self.home.path().display();
        let url = format!("postgres:///{database}?host={host}&user=postgres");
        Address::parse(&url).unwrap()
    }

    /// Runs SQL in a database.
    pub(crate) async fn sql(&self, database: &str, sql: &str) {
        let address = self.address(database);
        let (client, connection) = address.config.connect(address.tls()).await.unwrap();
        let driver = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        driver.await.unwrap().unwrap();
    }

    /// Asks for one text.
    pub(crate) async fn ask(&self, database: &str, sql: &str) -> String {
        let address = self.address(database);
        let (client, connection) = address.config.connect(address.tls()).await.unwrap();
        let driver = tokio::spawn(connection);
        let text = client.query_one(sql, &[]).await.unwrap().get(0);
        drop(client);
        driver.await.unwrap().unwrap();
        text
    }

    /// An empty database.
    pub(crate) async fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::SeqCst);
        if number == 0 {
            // Brought up to date once; the others are copies of it.
            self.sql("postgres", "CREATE DATABASE fresh").await;
            let clock = Arc::new(crate::conformance::ManualClock::at(palisade_core::Timestamp(0)));
            let options = self.options("fresh", clock);
            crate::postgres::open::engine(&options).await.unwrap();
        }
        let name = format!("store{number}");
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE fresh")).await;
        name
    }

    /// Options whose time is made by hand.
    pub(crate) fn options(&self, database: &str, clock: Arc<dyn Clock>) -> PostgresOptions {
        let options = PostgresOptions::new(self.address(database), clock);
        PostgresOptions { time: TimeSource::Given, writers: 3, ..options }
    }

    /// A store in a database of its own, on a clock.
    ///
    /// For one store after the other: the database of the last one goes.
    pub(crate) async fn store(&self, clock: Arc<dyn Clock>) -> PostgresStore {
        if let Some(last) = self.databases.load(Ordering::SeqCst).checked_sub(1) {
            let gone = format!("DROP DATABASE IF EXISTS store{last} WITH (FORCE)");
            self.sql("postgres", &gone).await;
        }
        let database = self.database().await;
        PostgresStore::open(self.options(&database, clock)).await.unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop_at_once();
    }
}

fn ids_of(user: &str) -> (u32, u32) {
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let line = passwd.lines().find(|line| line.split(':').next() == Some(user));
    let line = line.unwrap_or_else(|| panic!("there is no user {user}: run scripts/setup test"));
    let id = |field| line.split(':').nth(field).and_then(|id: &str| id.parse().ok());
    (id(2).unwrap(), id(3).unwrap())
}

/// Debian keeps the server's programs out of the path.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = versions.map(|version| version.path().join("bin").join(name)).collect();
    found.sort();
    found.reverse();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path).map(|folder| folder.join(name)));
    let there = found.iter().find(|candidate| candidate.is_file());
    there.unwrap_or_else(|| panic!("none of {found:?}: run scripts/setup test")).clone()
}

#[expect(clippy::disallowed_methods, reason = "the tests start a database")]
fn plain(program: &str) -> Command {
    Command::new(program)
}
