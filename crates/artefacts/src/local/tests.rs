//! The folder under the suite that every backend passes, and under faults of its own.

mod crashes;
mod disk;

use std::{fs, sync::Arc};

use async_trait::async_trait;

use super::LocalBlobs;
use crate::{Blobs, Place, conformance::blobs::Bench};

/// A folder that goes with the test.
struct Folder {
    blobs: LocalBlobs,
    _folder: tempfile::TempDir,
}

impl Folder {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Deeper than what exists, as a fresh data directory is.
        let blobs = LocalBlobs::open(folder.path().join("data/blobs")).await.expect("opened");
        Self { blobs, _folder: folder }
    }

    /// What the next start of the same owner finds.
    async fn reopened(&self) -> LocalBlobs {
        LocalBlobs::open(self.blobs.root()).await.expect("reopened")
    }
}

#[async_trait]
impl Bench for Folder {
    fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(self.blobs.clone())
    }

    async fn damage(&self, place: Place, bytes: Vec<u8>) {
        let file = self.blobs.local_path(place).expect("a file");
        fs::remove_file(&file).expect("it is read-only");
        fs::write(&file, bytes).expect("damaged");
    }

    async fn leftovers(&self) -> usize {
        fs::read_dir(self.blobs.root().join("arriving")).expect("a folder").count()
    }
}

crate::blob_conformance!(Folder::new());

#[tokio::test]
async fn a_file_system_that_takes_no_folders_is_an_error() {
    for folder in ["/proc/palisade", "/proc/palisade/deeper"] {
        let error = LocalBlobs::open(folder).await.expect_err("there are no folders to be made");
        assert!(error.to_string().contains("/proc/palisade"), "{error}");
    }
}
