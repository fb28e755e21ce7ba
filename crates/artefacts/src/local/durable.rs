//! Folders that survive a power cut.

use std::{fs, io, path::Path};

use crate::BlobError;

/// Makes the entries of a folder durable: what was linked, renamed or removed in it before.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), BlobError> {
    fs::File::open(folder)
        .and_then(|opened| opened.sync_all())
        .map_err(|error| BlobError::io("make durable the folder", folder, error))
}

/// Creates a folder with its parents, durably. That it exists is success, and is made durable
/// too: whoever created it may have died before that.
pub(crate) fn create_folder(folder: &Path) -> Result<(), BlobError> {
    let existed = match fs::create_dir(folder) {
        Ok(()) => false,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = folder.parent().filter(|parent| !parent.exists());
            let Some(parent) = parent else {
                // Not for want of a parent: some file systems take no folders.
                return Err(BlobError::io("create the folder", folder, error));
            };
            create_folder(parent)?;
            // Once more, whatever comes: the parent is there now.
            fs::create_dir(folder)
                .or_else(|error| if folder.is_dir() { Ok(()) } else { Err(error) })
                .map_err(|error| BlobError::io("create the folder", folder, error))?;
            false
        }
        Err(error) => return Err(BlobError::io("create the folder", folder, error)),
    };
    let parent = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    match sync_folder(parent) {
        // Somebody else's folder, given to us with ours in it: its entry is theirs to keep.
        Err(BlobError::Io { source, .. })
            if existed && source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Ok(())
        }
        other => other,
    }
}
