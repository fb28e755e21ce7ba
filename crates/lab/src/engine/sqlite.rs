//! The real SQLite store, in a folder of its own: a crash drops it, a start opens it again.

use std::path::PathBuf;

use palisade_core::{Number, Timestamp, transition::Beat};
use palisade_store::{
    Failure,
    command::{Answer, Beats, Command, Suspect},
    query::{Query, View},
    sqlite::{Place, SqliteEngine},
};
use tempfile::TempDir;

use super::{Engine, Lie};

/// The database's name within a data folder.
const DATABASE: &str = "palisade.db";

/// Records in SQLite.
#[derive(Debug)]
pub struct SqliteRecords {
    folder: TempDir,
    /// None between a crash and the next start.
    engine: Option<SqliteEngine>,
    /// The files as a death in the middle of a write left them.
    left: Option<Files>,
    /// Whether the disk takes nothing more during the next commands.
    full: bool,
}

/// The database, and the log of what is not in it yet.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl SqliteRecords {
    /// An empty store, in memory-backed storage where there is some: what is under test is what
    /// SQLite is told to write, not the disk.
    pub fn new(now: Timestamp) -> Self {
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
        let folder = folder.expect("the machine has room for a temporary folder");
        let mut records = Self { folder, engine: None, left: None, full: false };
        records.open(now);
        records
    }

    fn open(&mut self, now: Timestamp) {
        let place = Place::Folder(self.folder.path().join("data"));
        let engine = SqliteEngine::open(place, now);
        self.engine = Some(engine.expect("what a crash left can be opened"));
    }

    fn paths(&self) -> [PathBuf; 2] {
        let folder = self.folder.path().join("data");
        [folder.join(DATABASE), folder.join(format!("{DATABASE}-wal"))]
    }

    /// The files as they are now, as a copy would find them.
    fn files(&self) -> Files {
        let [database, log] = self.paths().map(|path| std::fs::read(path).unwrap_or_default());
        Files { database, log }
    }

    fn engine(&mut self) -> &mut SqliteEngine {
        self.engine.as_mut().expect("a server that is down asks for nothing")
    }
}

impl Engine for SqliteRecords {
    fn apply(&mut self, command: &Command, now: Timestamp) -> Result<Answer, Failure> {
        let mut answers = self.apply_all(std::slice::from_ref(command), now);
        answers.pop().expect("one answer a command")
    }

    /// One transaction, as the real server runs them.
    fn apply_all(&mut self, commands: &[Command], now: Timestamp) -> Vec<Result<Answer, Failure>> {
        if !std::mem::take(&mut self.full) {
            return self.engine().apply_batch(commands.to_vec(), now).answers;
        }
        self.engine().leave_room(Some(0)).expect("a connection takes a pragma");
        let answers = self.engine().apply_batch(commands.to_vec(), now).answers;
        self.engine().leave_room(None).expect("a connection takes a pragma");
        answers
    }

    fn commits_by_itself(&self) -> bool {
        true
    }

    fn commit(&mut self) {}

    /// A death in the middle of a transaction: of what it added to the log, some is there. Where
    /// it went on to move the log into the database, that is another's business.
    fn die_within(
        &mut self,
        commands: &[Command],
        now: Timestamp,
        chance: u64,
    ) -> Vec<Result<Answer, Failure>> {
        let before = self.files();
        let answers = self.apply_all(commands, now);
        let mut after = self.files();
        if after.database == before.database && after.log.starts_with(&before.log) {
            let added = (after.log.len() - before.log.len()) as u64;
            let kept = usize::try_from(chance % (added + 1)).expect("not above a length");
            after.log.truncate(before.log.len() + kept);
            self.left = Some(after);
        }
        answers
    }

    /// Dropping it closes the database, which tidies up; a crash does not, so what is there just
    /// before is put back.
    fn crash(&mut self) {
        self.full = false;
        let left = self.left.take().unwrap_or_else(|| self.files());
        self.engine = None;
        let [database, log] = self.paths();
        let written = std::fs::write(database, left.database);
        written.and_then(|()| std::fs::write(log, left.log)).expect("the folder takes what it had");
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

    fn fill_disk(&mut self) {
        self.full = true;
    }
}

#[cfg(test)]
mod tests;
