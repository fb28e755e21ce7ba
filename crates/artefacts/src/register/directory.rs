//! Cells as files in a folder of this machine, safe against `kill -9` and power cuts.
//!
//! A cell has two files that are never deleted: `DIGEST.lock`, which whoever reads or swaps holds
//! by `flock`, and `DIGEST.cell`, which is replaced by renaming `DIGEST.next` over it. The kernel
//! releases a lock with its process, so a killed writer holds up nobody; a *stopped* one does, and
//! others give up after a while with nothing done. The step-by-step argument is in
//! `docs/artefacts.md`. For local file systems: `flock` and `rename` over a network promise less.

mod files;
#[cfg(test)]
mod tests;

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use palisade_core::Digest;

use self::files::{Files, Replaced};
use super::{Cell, CellError, CompareAndSwap, Key, Swap, Version};
use crate::local::{blocking, create_folder};

/// The first pause between two attempts to lock, in ms, and the longest.
const LOCK_PAUSES_MS: (u64, u64) = (1, 50);

/// Cells in a folder. Any number of processes of this machine may use it at once.
#[derive(Debug, Clone)]
pub struct DirectoryCells {
    root: Arc<PathBuf>,
    lock_wait_ms: u64,
}

/// Who holds the lock: many readers, or one that swaps.
#[derive(Debug, Clone, Copy)]
enum Hold {
    Shared,
    Alone,
}

impl DirectoryCells {
    /// How long others wait for a lock, by default, in ms. It is held for a few milliseconds, so
    /// this long means that its holder is stopped.
    pub const LOCK_WAIT_MS_DEFAULT: u64 = 10_000;

    /// Opens (and creates, durably) the folder. `lock_wait_ms` is how long to wait for a cell that
    /// somebody else holds, before giving up with nothing done.
    pub async fn open(root: impl Into<PathBuf>, lock_wait_ms: u64) -> Result<Self, CellError> {
        let root = root.into();
        let name = root.display().to_string();
        let folder = root.clone();
        blocking(move || create_folder(&folder))
            .await
            .map_err(|error| CellError::new(name, "create the folder", error))?;
        Ok(Self { root: Arc::new(root), lock_wait_ms })
    }

    fn error(
        &self,
        doing: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> CellError {
        CellError::new(self.name(), doing, source)
    }

    /// By digest: keys may be longer than a file name may be, and one may be a folder of another.
    fn files(&self, key: &Key) -> Files {
        Files::new(&self.root, Digest::of(key.as_str().as_bytes()))
    }

    /// Waits for the lock of a cell. Asking again, with pauses, instead of blocking: a holder that
    /// is stopped must not use up the threads that all other file work needs.
    async fn lock(&self, files: &Files, hold: Hold) -> Result<fs::File, CellError> {
        let (mut pause_ms, pause_ms_max) = LOCK_PAUSES_MS;
        let mut waited_ms = 0;
        loop {
            let path = files.lock();
            let attempt = tokio::task::spawn_blocking(move || try_lock(&path, hold)).await;
            match attempt.map_err(io::Error::other).flatten() {
                Ok(Some(held)) => return Ok(held),
                Ok(None) => {}
                Err(error) => return Err(self.error("lock", error)),
            }
            if waited_ms >= self.lock_wait_ms {
                let holder = format!("somebody holds {} all the time", files.lock().display());
                return Err(self.error("lock", holder));
            }
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
            waited_ms += pause_ms;
            pause_ms = (pause_ms * 2).min(pause_ms_max);
        }
    }
}

fn try_lock(path: &PathBuf, hold: Hold) -> io::Result<Option<fs::File>> {
    let file = fs::File::options().create(true).truncate(false).write(true).open(path)?;
    let locked = match hold {
        Hold::Shared => file.try_lock_shared(),
        Hold::Alone => file.try_lock(),
    };
    match locked {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

#[async_trait]
impl CompareAndSwap for DirectoryCells {
    fn name(&self) -> String {
        self.root.display().to_string()
    }

    async fn read(&self, key: &Key) -> Result<Option<Cell>, CellError> {
        let files = self.files(key);
        let looked = files.clone();
        let is_there = tokio::task::spawn_blocking(move || looked.is_there())
            .await
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| self.error("read", error))?;
        if !is_there {
            // Nobody was told yet that it is; and asking for a name leaves no lock file behind.
            return Ok(None);
        }
        let lock = self.lock(&files, Hold::Shared).await?;
        let work = move || {
            let found = files.read()?;
            if found.is_some() {
                // A writer may have died between its rename and this. What is read is told to
                // others, so it must not be lost afterwards.
                files.sync_folder()?;
            }
            drop(lock);
            Ok(found)
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| self.error("read", error))
    }

    async fn swap(&self, key: &Key, expected: Option<&Version>, bytes: Bytes) -> Swap {
        let files = self.files(key);
        let lock = match self.lock(&files, Hold::Alone).await {
            Ok(lock) => lock,
            Err(error) => return Swap::NotDone(error),
        };
        let expected = expected.cloned();
        let work = move || {
            let replaced = files.replace(expected.as_ref(), &bytes);
            drop(lock);
            replaced
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Replaced::Done) => Swap::Swapped,
            Ok(Replaced::Conflict) => Swap::Conflict,
            Ok(Replaced::NotDone(error)) => Swap::NotDone(self.error("swap", error)),
            Ok(Replaced::Unknown(error)) => Swap::Unknown(self.error("swap", error)),
            Err(error) => Swap::Unknown(self.error("swap", error)),
        }
    }
}
