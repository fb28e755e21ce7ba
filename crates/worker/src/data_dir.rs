//! The worker's own folder: a lock, and per attempt a scratch folder and a folder of inputs, which
//! are gone when the attempt is.
//!
//! ```text
//! lock                      held by the one process that owns the folder
//! scratch/<job>-<token>/    what the render writes
//! inputs/<job>-<token>/     what it reads, under names of our own
//! ```
//!
//! Inputs lie beside the scratch, not in it: what a render writes or clears cannot touch them.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use palisade_core::{JobId, Number};
use rustix::fs::FlockOperation;

/// For the owner alone: customers' files are in them.
const FOLDER_MODE: u32 = 0o700;

/// Why a folder cannot be a worker's.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error("data: {path:?} is in use by another worker; each needs a folder of its own")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The system says no.
    #[error("data: {path:?} cannot be used")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The folder, owned.
#[derive(Debug)]
pub(crate) struct DataDir {
    root: PathBuf,
    /// Held for as long as this lives; the kernel lets go of it however the process ends.
    _lock: File,
}

impl DataDir {
    /// Makes the folder if there is none, and takes it.
    pub(crate) fn open(root: &Path) -> Result<Self, DataDirError> {
        // Children run in folders of their own: a relative path would mean another one there.
        let root = std::path::absolute(root).map_err(io_error(root))?;
        make(&root).map_err(io_error(&root))?;
        let lock_path = root.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(io_error(&lock_path))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DataDirError::InUse { path: root }),
            Err(error) => return Err(io_error(&lock_path)(error.into())),
        }
        let data_dir = Self { root, _lock: lock };
        for folder in [data_dir.scratch_root(), data_dir.inputs_root()] {
            make(&folder).map_err(io_error(&folder))?;
        }
        Ok(data_dir)
    }

    /// Where attempts' scratch folders are.
    pub(crate) fn scratch_root(&self) -> PathBuf {
        self.root.join("scratch")
    }

    fn inputs_root(&self) -> PathBuf {
        self.root.join("inputs")
    }

    /// Removes what earlier lives left. Answers how many folders. Only once nothing of theirs
    /// runs any more.
    pub(crate) fn clear(&self) -> Result<usize, DataDirError> {
        let mut removed = 0;
        for root in [self.scratch_root(), self.inputs_root()] {
            for entry in fs::read_dir(&root).map_err(io_error(&root))? {
                let path = entry.map_err(io_error(&root))?.path();
                remove(&path).map_err(io_error(&path))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Folders for one attempt.
    pub(crate) fn attempt(&self, job: JobId, token: Number) -> io::Result<AttemptFolders> {
        let name = format!("{job}-{token}");
        let folders = AttemptFolders {
            scratch: self.scratch_root().join(&name),
            inputs: self.inputs_root().join(&name),
        };
        for folder in [&folders.scratch, &folders.inputs] {
            // Tokens are never given twice: what is there already is not ours to know.
            remove(folder)?;
            make(folder)?;
        }
        Ok(folders)
    }
}

/// One attempt's folders. Removed when dropped, whatever became of it.
#[derive(Debug)]
pub(crate) struct AttemptFolders {
    pub(crate) scratch: PathBuf,
    pub(crate) inputs: PathBuf,
}

impl Drop for AttemptFolders {
    fn drop(&mut self) {
        for folder in [&self.scratch, &self.inputs] {
            if let Err(error) = remove(folder) {
                let folder = folder.display();
                tracing::error!(%folder, %error, "not removed; the next start will try again");
            }
        }
    }
}

/// How much the files below a folder use, in bytes. What disappears meanwhile counts nothing.
pub(crate) fn used_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => used_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> DataDirError {
    move |source| DataDirError::Io { path: path.to_owned(), source }
}
