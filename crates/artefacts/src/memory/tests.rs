//! Memory under the suite that every backend passes.

use std::sync::Arc;

use async_trait::async_trait;

use super::MemoryBlobs;
use crate::{Blobs, Place, conformance::blobs::Bench};

struct Memory(MemoryBlobs);

#[async_trait]
impl Bench for Memory {
    fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(self.0.clone())
    }

    async fn damage(&self, place: Place, bytes: Vec<u8>) {
        self.0.damage(place, bytes.into());
    }

    async fn leftovers(&self) -> usize {
        // Uploads are values of their own until they are placed.
        0
    }
}

crate::blob_conformance!(std::future::ready(Memory(MemoryBlobs::new())));
