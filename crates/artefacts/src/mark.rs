//! Whose a place for artefacts is: a small record beside the blobs.
//!
//! Two mistakes of an operator would go unnoticed without it: a server that is given other
//! artefacts than its neighbours, which finds none of their blobs, and two stores that are given the
//! same ones, each of which collects what the other keeps. So a place names the store that it
//! belongs to, and has a name of its own by which the store knows it again.

use std::{io::Write as _, path::Path};

use object_store::{ObjectStoreExt as _, PutMode, PutOptions};
use serde::{Deserialize, Serialize};

use crate::{Opened, bucket::Bucket, local::durable};

/// What it is called, below the prefix or in the folder.
pub const FILE_NAME: &str = "palisade-place";

/// What a place says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The place's own name, random.
    pub place: String,
    /// The store that it belongs to.
    pub store: String,
}

/// A mark that could not be read or made.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// The bucket.
    #[error("{FILE_NAME} could not be read or written in {place}")]
    Bucket {
        /// Which place.
        place: String,
        /// Why.
        source: object_store::Error,
    },
    /// The folder.
    #[error("{FILE_NAME} could not be read or written in {place}")]
    Folder {
        /// Which place.
        place: String,
        /// Why.
        source: std::io::Error,
    },
    /// There is something by that name that is no mark.
    #[error("{FILE_NAME} in {place} is not Palisade's: {text:?}")]
    Foreign {
        /// Which place.
        place: String,
        /// Its beginning.
        text: String,
    },
}

impl Opened {
    /// The mark of this place; `ours` is set where there is none. None: it lives in memory, and
    /// nothing outlives it.
    pub async fn mark(&self, ours: &Mark) -> Result<Option<Mark>, MarkError> {
        let text = serde_json::to_vec(ours).expect("two texts");
        let found = match (&self.bucket, &self.folder) {
            (Some(bucket), _) => {
                let failed = |source| MarkError::Bucket { place: self.name.clone(), source };
                in_bucket(bucket, text).await.map_err(failed)?
            }
            (None, Some(folder)) => {
                let folder = folder.clone();
                let made = tokio::task::spawn_blocking(move || in_folder(&folder, &text));
                let made = made.await.map_err(std::io::Error::other).and_then(|made| made);
                let failed = |source| MarkError::Folder { place: self.name.clone(), source };
                made.map_err(failed)?
            }
            (None, None) => return Ok(None),
        };
        serde_json::from_slice(&found).map(Some).map_err(|_| {
            let text = String::from_utf8_lossy(&found[..found.len().min(100)]).into_owned();
            MarkError::Foreign { place: self.name.clone(), text }
        })
    }
}

/// What is there, or was put there now. Of several that come at once, one is first: all read its.
async fn in_bucket(bucket: &Bucket, ours: Vec<u8>) -> Result<Vec<u8>, object_store::Error> {
    let path = bucket.prefix.clone().join(FILE_NAME);
    for _ in 0..2 {
        match bucket.store.get(&path).await {
            Ok(found) => return found.bytes().await.map(|bytes| bytes.to_vec()),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        // Without conditional writes two that come first at once may both believe so.
        let mode = if bucket.is_conditional { PutMode::Create } else { PutMode::Overwrite };
        let put = PutOptions { mode, ..PutOptions::default() };
        match bucket.store.put_opts(&path, ours.clone().into(), put).await {
            Ok(_) => return Ok(ours),
            Err(object_store::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    bucket.store.get(&path).await?.bytes().await.map(|bytes| bytes.to_vec())
}

fn in_folder(folder: &Path, ours: &[u8]) -> std::io::Result<Vec<u8>> {
    let path = folder.join(FILE_NAME);
    match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        found => return found,
    }
    // Whole or not at all: it gets its name once it is on the disk.
    let begun = folder.join(format!("{FILE_NAME}.{}", std::process::id()));
    let mut file = std::fs::File::create(&begun)?;
    file.write_all(ours)?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&begun, &path);
    std::fs::remove_file(&begun)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    durable::sync_folder(folder).map_err(std::io::Error::other)?;
    std::fs::read(&path)
}

#[cfg(test)]
mod tests;
