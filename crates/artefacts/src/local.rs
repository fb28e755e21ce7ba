//! Blobs as plain files in a folder of this machine.
//!
//! The argument for durability, step by step, is in `docs/artefacts.md`; the steps themselves are
//! in `steps`, each a function of its own, so that tests can stop between any two.
//!
//! The folder belongs to one process at a time (the owner of the data directory). Others on the
//! same machine may read it, and may write to it through a `LocalBlobs` of their own: an arriving
//! file is locked as long as its writer lives, so the sweep at start takes only the dead's.

pub(crate) mod durable;
mod layout;
mod reader;
mod steps;
#[cfg(test)]
mod tests;
mod upload;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use palisade_core::Timestamp;

pub(crate) use self::durable::{create_folder, sync_folder};
use self::layout::Layout;
use crate::{BlobError, BlobReader, Blobs, ByteRange, Place, Upload, blobs::Listed};

/// Blobs in a folder. Cheap to clone; clones are the same place.
#[derive(Debug, Clone)]
pub struct LocalBlobs {
    shared: Arc<Shared>,
}

/// What uploads need of their backend.
#[derive(Debug)]
struct Shared {
    layout: Layout,
    /// Makes names of arriving files different within this process.
    serial: AtomicU64,
}

impl LocalBlobs {
    /// Opens (and lays out, if need be) the folder `root`, durably, and removes what uploads left
    /// there that died with their process.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self, BlobError> {
        let layout = Layout::new(root.into());
        blocking(move || {
            layout.create()?;
            let swept = steps::sweep(&layout.arriving())?;
            if swept > 0 {
                tracing::info!(swept, root = %layout.root().display(), "removed dead uploads");
            }
            Ok(Self { shared: Arc::new(Shared { layout, serial: AtomicU64::new(0) }) })
        })
        .await
    }

    /// The folder as it is found, to look at what is there: nothing is laid out or removed.
    pub fn as_found(root: impl Into<PathBuf>) -> Self {
        let layout = Layout::new(root.into());
        Self { shared: Arc::new(Shared { layout, serial: AtomicU64::new(0) }) }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        self.shared.layout.root()
    }
}

#[async_trait]
impl Blobs for LocalBlobs {
    async fn begin(
        &self,
        expected: Option<Place>,
        size_max: u64,
    ) -> Result<Box<dyn Upload>, BlobError> {
        let shared = Arc::clone(&self.shared);
        let upload = upload::LocalUpload::begin(shared, expected, size_max).await?;
        Ok(Box::new(upload))
    }

    async fn open(&self, place: Place, range: ByteRange) -> Result<BlobReader, BlobError> {
        let path = self.shared.layout.file(place);
        reader::open(place, path, range).await
    }

    async fn size(&self, place: Place) -> Result<Option<u64>, BlobError> {
        let path = self.shared.layout.file(place);
        blocking(move || match fs::metadata(&path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                layout::check_folder_of(&path)?;
                Ok(None)
            }
            Err(error) => Err(BlobError::io("look at", path, error)),
        })
        .await
    }

    async fn delete(&self, place: Place) -> Result<(), BlobError> {
        let path = self.shared.layout.file(place);
        let folder = self.shared.layout.folder(place);
        blocking(move || {
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    layout::check_folder_of(&path)?;
                }
                Err(error) => return Err(BlobError::io("delete", path, error)),
            }
            // Also when nothing was there: an earlier deletion may have died before this.
            sync_folder(&folder)
        })
        .await
    }

    async fn list(&self) -> Result<BoxStream<'static, Result<Listed, BlobError>>, BlobError> {
        let folders = self.shared.layout.folders();
        let listed = stream::iter(folders)
            .then(|folder| blocking(move || layout::list_folder(&folder)))
            .map_ok(|found| stream::iter(found.into_iter().map(Ok)))
            .try_flatten();
        Ok(listed.boxed())
    }

    fn local_path(&self, place: Place) -> Option<PathBuf> {
        Some(self.shared.layout.file(place))
    }

    /// A living writer's file is locked, however long it takes: time is not asked.
    async fn sweep(&self, _before: Timestamp) -> Result<u64, BlobError> {
        let arriving = self.shared.layout.arriving();
        blocking(move || steps::sweep(&arriving)).await
    }
}

/// Runs file work where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => {
                Err(BlobError::io("finish, while stopping,", "", io::Error::other(error)))
            }
        },
    }
}
