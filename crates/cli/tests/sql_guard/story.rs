//! The story under `palisade lock`, with numbers that were really granted: A is stopped past its
//! lock, B is granted it, and the database refuses A when it wakes. Writers are shell scripts that
//! use the database's own client, as `docs/fencing-databases.md` shows.

use std::path::Path;

use palisade_lab::drill::{Cluster, Process, wait_for};

use crate::{
    database::{Database, Holder, fence, fresh_export, writers, written_by},
    mariadb::Mariadb,
    postgres::Postgres,
    printed::PROGRAM,
    server::{command, run},
    session::LIMIT,
    sqlite::Sqlite,
};

const RESOURCE: &str = "story";

/// A database, and how a script reaches it.
pub(crate) struct Scene<'a> {
    pub(crate) database: &'a dyn Database,
    /// A shell's words for the client, which reads SQL from its standard input and fails at the
    /// first error.
    pub(crate) client: String,
    /// Whether the client has to be told how long to wait for others.
    pub(crate) patience: &'static str,
    /// Whether a refusal can say where the fence stands.
    pub(crate) names_the_fence: bool,
    /// In which it runs.
    pub(crate) folder: &'a Path,
}

/// A writer under the lock.
struct Writer {
    process: Process,
}

impl Writer {
    async fn said(&self, start: &str) -> String {
        wait_for(&format!("{} to say {start:?}", self.process.name()), LIMIT, async || {
            let lines = self.process.lines();
            let found = lines.iter().find_map(|line| line.strip_prefix(start));
            found.map(str::to_owned).ok_or_else(|| format!("{lines:?}; {}", self.process.log()))
        })
        .await
        .expect("it says so")
    }

    async fn raised(&self) -> i64 {
        self.said("raised ").await.parse().expect("a number")
    }

    async fn pid(&self) -> String {
        self.said("pid ").await
    }
}

fn signal(pid: &str, name: &str) {
    let mut kill = command("kill");
    kill.args(["-s", name, pid]);
    run(kill);
}

impl Scene<'_> {
    /// Raises first, says so, waits to be let go, writes under the guard, says what came of it.
    fn script(&self) -> String {
        // The shell fills in the pair; the number stands for the token until then.
        let holder = Holder { number: 770_077, lease: "$PALISADE_LEASE" };
        let shown = |sql: String| sql.replace("770077", "$PALISADE_TOKEN");
        let raise = shown(self.database.raise(RESOURCE, holder));
        let guard = shown(self.database.guard(RESOURCE, holder));
        let write = shown(self.database.write(RESOURCE, holder));
        let (client, begin, patience) = (&self.client, self.database.begin(), self.patience);
        format!(
            "echo \"pid $$\"\n\
             {client} <<SQL || exit 9\n{patience}\n{raise}\nSQL\n\
             echo \"raised $PALISADE_TOKEN\"\n\
             while ! [ -e \"go-$NAME\" ]; do sleep 0.05; done\n\
             {client} 2> \"$NAME.err\" <<SQL\n{patience}\n{begin}\n{guard}\n{write}\nCOMMIT;\nSQL\n\
             echo \"wrote $?\"\n\
             while ! [ -e \"end-$NAME\" ]; do sleep 0.05; done\n"
        )
    }

    fn writer(&self, cluster: &Cluster, name: &str, ttl: &str) -> Writer {
        let flags = ["lock", "door", "--ttl", ttl, "--wait", "10m", "--", "sh", "-c"];
        let mut args: Vec<_> = flags.map(str::to_owned).into();
        args.push(format!("cd '{}'\n{}", self.folder.display(), self.script()));
        let url = cluster.url();
        let environment = [("PALISADE_SERVER", url.as_str()), ("NAME", name)];
        let log = self.folder.join(format!("{name}.log"));
        let process = Process::start(name, Path::new(PROGRAM), &args, &environment, &log);
        Writer { process: process.expect("it starts") }
    }

    fn let_go(&self, what: &str) {
        std::fs::write(self.folder.join(what), "").expect("a file");
    }

    /// Alice, stopped with her script after she has raised; and Bob, who has raised.
    async fn two(&self, cluster: &Cluster) -> (Writer, Writer, i64, i64) {
        let alice = self.writer(cluster, "alice", "1s");
        let first = alice.raised().await;
        alice.process.stop();
        signal(&alice.pid().await, "STOP");
        let bob = self.writer(cluster, "bob", "5m");
        let second = bob.raised().await;
        assert!(second > first, "{second} was granted after {first}");
        (alice, bob, first, second)
    }

    /// Alice's script wakes alone: nothing has told it. Answers what the database told it.
    async fn wake(&self, alice: &Writer) -> String {
        self.let_go("go-alice");
        signal(&alice.pid().await, "CONT");
        assert_ne!(alice.said("wrote ").await, "0", "it is refused");
        std::fs::read_to_string(self.folder.join("alice.err")).expect("what it was told")
    }

    fn is_stale(&self, told: &str, second: i64) {
        assert!(told.contains("PF001"), "{told}");
        assert!(!self.names_the_fence || told.contains(&second.to_string()), "{told}");
    }

    async fn cluster(&self) -> Cluster {
        let folder = self.folder.join("palisade");
        Cluster::start(Path::new(PROGRAM), &folder, &[]).await.expect("the server starts")
    }

    pub(crate) async fn a_stopped_writer_is_refused_and_nobody_saw_its_write(&self) {
        let cluster = self.cluster().await;
        let mut reader = self.database.session("");
        fresh_export(&mut reader, RESOURCE);
        let (alice, bob, _, second) = self.two(&cluster).await;
        self.let_go("go-bob");
        assert_eq!(bob.said("wrote ").await, "0");
        assert_eq!(written_by(&mut reader, RESOURCE), second);
        let told = self.wake(&alice).await;
        self.is_stale(&told, second);
        assert_eq!(writers(&mut reader, RESOURCE), [second], "A's is nowhere");
        assert_eq!(written_by(&mut reader, RESOURCE), second);
    }

    pub(crate) async fn it_is_refused_all_the_same_when_the_new_holder_died(&self) {
        let cluster = self.cluster().await;
        let mut reader = self.database.session("");
        fresh_export(&mut reader, RESOURCE);
        let (alice, bob, _, second) = self.two(&cluster).await;
        bob.process.kill();
        let told = self.wake(&alice).await;
        self.is_stale(&told, second);
        assert_eq!((written_by(&mut reader, RESOURCE), fence(&mut reader, RESOURCE)), (0, second));
        let stranger = Holder { number: second, lease: "strangers" };
        reader.refused("PF002", &self.database.guard(RESOURCE, stranger));
        assert_eq!(writers(&mut reader, RESOURCE), Vec::<i64>::new());
    }
}

fn on_postgres<'a>(postgres: &'a Postgres, folder: &'a Path) -> Scene<'a> {
    let host = postgres.home.path().display();
    let flags = "-X -q -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -U postgres -d shop";
    let client = format!("psql {flags} -h '{host}'");
    Scene { database: postgres, client, patience: "", names_the_fence: true, folder }
}

fn on_mariadb<'a>(mariadb: &'a Mariadb, folder: &'a Path) -> Scene<'a> {
    let socket = mariadb.home.path().join("socket").display().to_string();
    let flags = "--no-defaults --skip-reconnect --user root";
    let client = format!("mariadb {flags} --socket='{socket}' shop");
    Scene { database: mariadb, client, patience: "", names_the_fence: true, folder }
}

fn on_sqlite<'a>(sqlite: &'a Sqlite, folder: &'a Path) -> Scene<'a> {
    let client = format!("sqlite3 -bail '{}'", sqlite.dir.path().join("shop.db").display());
    let patience = ".timeout 10000";
    Scene { database: sqlite, client, patience, names_the_fence: false, folder }
}

macro_rules! stories {
    ($($module:ident: $database:ident, $scene:ident;)*) => {$(
        mod $module {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn a_stopped_writer_is_refused_and_nobody_saw_its_write() {
                let (database, folder) = ($database::start(), tempfile::tempdir().unwrap());
                let scene = $scene(&database, folder.path());
                scene.a_stopped_writer_is_refused_and_nobody_saw_its_write().await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn it_is_refused_all_the_same_when_the_new_holder_died_and_so_is_a_stranger() {
                let (database, folder) = ($database::start(), tempfile::tempdir().unwrap());
                let scene = $scene(&database, folder.path());
                scene.it_is_refused_all_the_same_when_the_new_holder_died().await;
            }
        }
    )*};
}

stories! {
    postgres: Postgres, on_postgres;
    mariadb: Mariadb, on_mariadb;
    sqlite: Sqlite, on_sqlite;
}
