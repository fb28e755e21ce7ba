//! The steps of a write, in their order: create, append, settle, link, (unlink,) sync the folder.
//!
//! Each is a function that does one thing to the disk. A crash is possible after each of them;
//! what is then on the disk is always one of: nothing, an arriving file (swept at start), the
//! whole blob.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;

use crate::{BlobError, Place};

/// A file that is being written, at no place yet. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct Arriving {
    file: fs::File,
    path: PathBuf,
}

#[cfg(test)]
impl Arriving {
    /// The file, for tests that die for it.
    pub(super) fn file(&self) -> &fs::File {
        &self.file
    }

    /// Its name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        // What cannot be removed now is swept at the next start.
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, file = %self.path.display(), "could not remove an upload");
        }
    }
}

/// Creates an arriving file of a name that nobody has, and locks it for as long as it is open.
pub(super) fn create(folder: &Path, serial: &AtomicU64) -> Result<Arriving, BlobError> {
    loop {
        let number = serial.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number}", std::process::id()));
        // Read-only for all but this descriptor: what hands the file to a tool as its input must
        // not have the tool write over it.
        let mut options = fs::File::options();
        let file = match options.write(true).create_new(true).mode(0o444).open(&path) {
            Ok(file) => file,
            // A leftover of a process that had our id, or another owner's.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(BlobError::io("create", path, error)),
        };
        file.lock().map_err(|error| BlobError::io("lock", &path, error))?;
        let metadata = file.metadata().map_err(|error| BlobError::io("look at", &path, error))?;
        // A sweep may have come between creating and locking; then the file has no name any more,
        // and the name may be another's: begin again.
        if metadata.nlink() > 0 {
            return Ok(Arriving { file, path });
        }
    }
}

/// Appends bytes.
pub(super) fn append(arriving: &mut Arriving, piece: &Bytes) -> Result<(), BlobError> {
    arriving
        .file
        .write_all(piece)
        .map_err(|error| BlobError::io("write", arriving.path.clone(), error))
}

/// Makes the bytes durable. They have no lasting name yet.
pub(super) fn settle(arriving: &Arriving) -> Result<(), BlobError> {
    arriving
        .file
        .sync_all()
        .map_err(|error| BlobError::io("make durable", arriving.path.clone(), error))
}

/// Gives the settled bytes their place, without replacing what is there.
///
/// What is there came the same way: whole, with the digest that the place names. So the right size
/// is success; another size is damage from outside.
pub(super) fn link(
    arriving: &Arriving,
    place: Place,
    file: &Path,
    size: u64,
) -> Result<(), BlobError> {
    let error = match fs::hard_link(&arriving.path, file) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AlreadyExists {
        return Err(BlobError::io("link", file, error));
    }
    let there = fs::metadata(file).map_err(|error| BlobError::io("look at", file, error))?.len();
    if there == size {
        return Ok(());
    }
    Err(BlobError::Corrupt {
        place,
        found: format!("{there} bytes are there, the blob has {size}"),
    })
}

/// Removes arriving files whose writers are dead; answers how many.
pub(super) fn sweep(folder: &Path) -> Result<u64, BlobError> {
    let failed = |error| BlobError::io("list the folder", folder, error);
    let mut swept = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Ok(file) = fs::File::open(&path) else { continue };
        // The kernel drops a lock with its process: who still has it lives.
        if file.try_lock().is_err() {
            continue;
        }
        fs::remove_file(&path).map_err(|error| BlobError::io("remove", &path, error))?;
        swept += 1;
    }
    Ok(swept)
}
