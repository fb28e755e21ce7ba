//! How much of the disk is spoken for, and whether a render fits beside that.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use palisade_core::Number;

use crate::{data_dir::used_bytes, disk::Disk};

/// The disk, and what running renders were promised of it.
#[derive(Debug)]
pub(crate) struct Room {
    disk: Arc<dyn Disk>,
    at: PathBuf,
    free_bytes_min: u64,
    promised: Mutex<BTreeMap<Number, Promise>>,
}

#[derive(Debug)]
struct Promise {
    bytes: u64,
    folders: Vec<PathBuf>,
}

/// There is no room: what would be needed, and what there is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom {
    pub(crate) needed_bytes: u64,
    pub(crate) free_bytes: u64,
}

/// Room promised to one attempt, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    room: Arc<Room>,
    token: Number,
}

impl Room {
    /// On the disk where `at` is; `free_bytes_min` of it are never used.
    pub(crate) fn new(disk: Arc<dyn Disk>, at: PathBuf, free_bytes_min: u64) -> Arc<Self> {
        Arc::new(Self { disk, at, free_bytes_min, promised: Mutex::new(BTreeMap::new()) })
    }

    /// What may still be promised, in bytes: what is free, less what is kept free and what was
    /// promised and is not used yet. Walks the scratch folders, so it blocks for a moment.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let free = self.disk.free_bytes(&self.at)?.saturating_sub(self.free_bytes_min);
        let promised = self.promised();
        let to_come = promised.values().map(|promise| {
            let used: u64 = promise.folders.iter().map(|folder| used_bytes(folder)).sum();
            promise.bytes.saturating_sub(used)
        });
        Ok(free.saturating_sub(to_come.sum()))
    }

    /// Promises so many bytes to an attempt that writes in these folders, if they are there.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        token: Number,
        bytes: u64,
        folders: Vec<PathBuf>,
    ) -> io::Result<Result<Reserved, NoRoom>> {
        let free_bytes = self.free_bytes()?;
        if bytes > free_bytes {
            return Ok(Err(NoRoom { needed_bytes: bytes, free_bytes }));
        }
        self.promised().insert(token, Promise { bytes, folders });
        Ok(Ok(Reserved { room: Arc::clone(self), token }))
    }

    fn promised(&self) -> MutexGuard<'_, BTreeMap<Number, Promise>> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.room.promised().remove(&self.token);
    }
}
