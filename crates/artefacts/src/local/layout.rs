//! Which file is which place: `root/places/ab/DIGEST.GENERATION`, and `root/arriving/` for uploads.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use super::{create_folder, sync_folder};
use crate::{BlobError, Place, blobs::Listed};

/// The names below one root.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    root: PathBuf,
}

impl Layout {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where uploads arrive: in the same file system as the places, or linking would fail.
    pub(super) fn arriving(&self) -> PathBuf {
        self.root.join("arriving")
    }

    fn places(&self) -> PathBuf {
        self.root.join("places")
    }

    /// The folder of a place: by the first two digits, so that none grows beyond 1/256 of all.
    pub(super) fn folder(&self, place: Place) -> PathBuf {
        self.places().join(format!("{:02x}", place.digest.as_bytes()[0]))
    }

    /// The file of a place.
    pub(super) fn file(&self, place: Place) -> PathBuf {
        self.folder(place).join(format!("{}.{}", place.digest, place.generation))
    }

    /// All folders that hold places.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        (0..=u8::MAX).map(|first| self.places().join(format!("{first:02x}"))).collect()
    }

    /// Creates every folder there will ever be, durably, so that a write has none to create.
    pub(super) fn create(&self) -> Result<(), BlobError> {
        create_folder(&self.root)?;
        create_folder(&self.arriving())?;
        create_folder(&self.places())?;
        for folder in self.folders() {
            match fs::create_dir(&folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(BlobError::io("create the folder", folder, error)),
            }
        }
        sync_folder(&self.places())
    }
}

/// Tells "no such blob" from "the whole folder is gone" (a disk that is not mounted), which must
/// not be taken for an absence.
pub(super) fn check_folder_of(file: &Path) -> Result<(), BlobError> {
    let folder = file.parent().expect("a place's file is in a folder");
    fs::metadata(folder)
        .map(|_| ())
        .map_err(|error| BlobError::io("find the folder", folder, error))
}

/// The blobs in one folder.
pub(super) fn list_folder(folder: &Path) -> Result<Vec<Listed>, BlobError> {
    let failed = |error| BlobError::io("list the folder", folder, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Some(place) = place_of(&entry.file_name()) else {
            tracing::warn!(file = %entry.path().display(), "a file among the blobs that is none");
            continue;
        };
        match entry.metadata() {
            Ok(metadata) => found.push(Listed { place, size: metadata.len() }),
            // Deleted since the folder was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BlobError::io("look at", entry.path(), error)),
        }
    }
    Ok(found)
}

/// The place that a file's name says.
fn place_of(name: &OsStr) -> Option<Place> {
    let (digest, generation) = name.to_str()?.split_once('.')?;
    format!("{digest}/{generation}").parse().ok()
}
