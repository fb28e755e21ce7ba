//! The real SQLite store, in a folder of its own: a crash drops it, a start opens it again.

use palisade_core::{Number, Timestamp, transition::Beat};
use palisade_store::{
    Failure,
    command::{Answer, Beats, Command, Suspect},
    query::{Query, View},
    sqlite::{Place, SqliteEngine},
};
use tempfile::TempDir;

use super::{Engine, Lie};

/// Records in SQLite.
#[derive(Debug)]
pub struct SqliteRecords {
    folder: TempDir,
    /// None between a crash and the next start.
    engine: Option<SqliteEngine>,
}

impl SqliteRecords {
    /// An empty store, in memory-backed storage where there is some: what is under test is what
    /// SQLite is told to write, not the disk.
    pub fn new(now: Timestamp) -> Self {
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
        let folder = folder.expect("the machine has room for a temporary folder");
        let mut records = Self { folder, engine: None };
        records.open(now);
        records
    }

    fn open(&mut self, now: Timestamp) {
        let place = Place::Folder(self.folder.path().join("data"));
        let engine = SqliteEngine::open(place, now);
        self.engine = Some(engine.expect("what a crash left can be opened"));
    }

    fn engine(&mut self) -> &mut SqliteEngine {
        self.engine.as_mut().expect("a server that is down asks for nothing")
    }
}

impl Engine for SqliteRecords {
    fn apply(&mut self, command: &Command, now: Timestamp) -> Result<Answer, Failure> {
        let mut batch = self.engine().apply_batch(vec![command.clone()], now);
        batch.answers.pop().expect("one answer a command")
    }

    /// One transaction, as the real server runs them.
    fn apply_all(&mut self, commands: &[Command], now: Timestamp) -> Vec<Result<Answer, Failure>> {
        self.engine().apply_batch(commands.to_vec(), now).answers
    }

    fn commits_by_itself(&self) -> bool {
        true
    }

    fn commit(&mut self) {}

    fn crash(&mut self) {
        // Dropped, not closed: nothing is recorded on the way out.
        self.engine = None;
    }

    fn start(&mut self, now: Timestamp) -> Timestamp {
        if self.engine.is_none() {
            self.open(now);
        }
        // A gap in a life the engine notices by itself, at the next command.
        self.engine().clock()
    }

    fn query(&self, query: &Query) -> View {
        let answer = self.engine.as_ref().map(|engine| engine.query(query));
        match answer {
            Some(Ok(view)) => view,
            Some(Err(failure)) => panic!("the store cannot be read: {failure}"),
            None => View::Jobs(Vec::new()),
        }
    }

    /// From outside the store only two lies can be told: to forget, and to suspect the living.
    fn lie(&mut self, lie: &Lie, now: Timestamp) -> Option<Answer> {
        match lie {
            Lie::GrantHeld { .. } => None,
            Lie::ForgetRenewal(beat) => {
                let leases = beat.leases.iter().map(|_| Some(Beat::Held)).collect();
                Some(Answer::Heartbeat(Beats { leases, released: Vec::new() }))
            }
            Lie::ExpireLiving { pick } => {
                let View::Leases(held) = self.query(&Query::Leases) else { return None };
                let count = u64::try_from(held.len()).ok().filter(|count| *count > 0)?;
                let victim = held.get(usize::try_from(pick % count).ok()?)?;
                let seen_at = Timestamp(Number::MAX.get());
                let suspect = Suspect { session: victim.session.clone(), seen_at };
                self.apply(&Command::Suspect(suspect), now).ok()
            }
        }
    }

    fn fill_disk(&mut self) {}
}
