//! How far the counter had come, in a file beside the database: so that a restored older copy of
//! the database is noticed, and no number that was answered is drawn a second time.
//!
//! The file is written about once a second, without waiting for the disk: what it lacks is less
//! than the counter jumps. A restore that brings the file back too is not noticed; for that there
//! is [`raise_tokens`].

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use palisade_core::{Number, Timestamp};

use crate::fault::Fault;

use super::{
    engine::SqliteEngine,
    open::{self, OpenError, Place},
};

const FILE_NAME: &str = "palisade.high-water";
const EVERY: Duration = Duration::from_secs(1);
/// How far the counter jumps when numbers were lost: further than any store draws in the time that
/// the file may be behind.
pub(super) const JUMP: u64 = 1 << 32;

/// The highest number that the file knows of. A file that cannot be read says nothing.
pub(super) fn read(folder: &Path) -> Option<Number> {
    std::fs::read_to_string(folder.join(FILE_NAME)).ok()?.trim().parse().ok()
}

fn write(folder: &Path, counter: u64) -> std::io::Result<()> {
    let new = folder.join(format!("{FILE_NAME}.new"));
    std::fs::write(&new, format!("{counter}\n"))?;
    std::fs::rename(new, folder.join(FILE_NAME))
}

/// Where the counter has to stand, if the file knows of higher numbers than the database.
pub(super) fn after_loss(known: Option<Number>, counter: Number) -> Option<Number> {
    let known = known.filter(|known| *known > counter)?;
    let jumped = known.get().saturating_add(JUMP).min(Number::MAX.get());
    Some(Number::new(jumped).expect("just bounded"))
}

/// Writes the file, on a thread of its own: the writer of the database waits for nothing else.
#[derive(Debug)]
pub(super) struct Keeper {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Follows a counter until it is dropped.
    pub(super) fn start(folder: PathBuf, counter: Arc<AtomicU64>) -> std::io::Result<Self> {
        let (end, ended) = channel();
        let named = std::thread::Builder::new().name("palisade-high-water".to_owned());
        let thread = named.spawn(move || follow(&folder, &counter, &ended))?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps the high-water file panicked");
        }
    }
}

fn follow(folder: &Path, counter: &AtomicU64, ended: &Receiver<()>) {
    let mut written = 0;
    loop {
        let waited = ended.recv_timeout(EVERY);
        let now = counter.load(Ordering::Relaxed);
        if now != written {
            match write(folder, now) {
                Ok(()) => written = now,
                Err(error) => tracing::warn!(%error, "the high-water file cannot be written"),
            }
        }
        if waited == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Raises the counter of a data folder by hand, where a loss could not be noticed. Answers where
/// it stands. No other process may have the folder, and a store must be there: none is made.
pub fn raise_tokens(folder: &Path, by: u64, now: Timestamp) -> Result<Number, OpenError> {
    let place = Place::Folder(folder.to_owned());
    let database = |source: Fault| OpenError::Database { place: place.to_string(), source };
    open::must_be_there(folder)?;
    let mut engine = SqliteEngine::open(place.clone(), now)?;
    let to = engine.counter().raised_by(by)?;
    engine.raise_counter(to).map_err(database)
}
