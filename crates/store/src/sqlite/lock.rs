//! One process to a data folder.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
};

use super::open::OpenError;

const FILE_NAME: &str = "palisade.lock";

/// Holds a data folder for this process. The kernel lets go when the process ends, however it
/// ends; the file stays.
#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the folder, or tells who has it.
    pub(super) fn take(folder: &Path) -> Result<Self, OpenError> {
        let path = folder.join(FILE_NAME);
        let io = |source| OpenError::Folder { folder: folder.to_owned(), source };
        let mut options = OpenOptions::new();
        // Not truncated: until it is locked, it belongs to whoever has it.
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(io)?;
                let pid = text.trim().parse().ok();
                return Err(OpenError::InUse { folder: folder.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        // For the message of whoever comes second; nothing rests on it.
        file.set_len(0).map_err(io)?;
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}
