//! Blobs in memory: the reference that the other backends are compared with, and a store for tests.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream, stream::BoxStream};
use palisade_core::{Digest, Number, digest::Hasher};

use crate::{
    BlobError, BlobReader, Blobs, ByteRange, Place, Staged, Upload, blobs::Listed,
    transfer::CHUNK_BYTES,
};

/// Blobs in memory. Clones are the same place. Nothing outlives the process.
#[derive(Debug, Clone, Default)]
pub struct MemoryBlobs {
    places: Arc<Mutex<BTreeMap<Place, Bytes>>>,
}

impl MemoryBlobs {
    /// An empty place.
    pub fn new() -> Self {
        Self::default()
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<Place, Bytes>> {
        // Each access is a single step, so a panic elsewhere leaves nothing half done.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts other bytes at a place, behind the contract's back: damage for tests.
    #[cfg(any(test, feature = "conformance"))]
    pub fn damage(&self, place: Place, bytes: Bytes) {
        self.places().insert(place, bytes);
    }
}

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn begin(
        &self,
        expected: Option<Place>,
        size_max: u64,
    ) -> Result<Box<dyn Upload>, BlobError> {
        let blobs = self.clone();
        Ok(Box::new(MemoryUpload { blobs, expected, size_max, bytes: Vec::new() }))
    }

    async fn open(&self, place: Place, range: ByteRange) -> Result<BlobReader, BlobError> {
        let bytes = self.places().get(&place).cloned().ok_or(BlobError::NotFound(place))?;
        let size = bytes.len() as u64;
        let range = range.within(size).ok_or(BlobError::OutOfRange { place, size })?;
        let digest = Digest::of(&bytes);
        let corrupt = range == (0..size) && digest != place.digest;
        let found = format!("the bytes have the digest {digest}");
        if corrupt && size == 0 {
            return Err(BlobError::Corrupt { place, found });
        }
        let mut rest = bytes.slice(offset(range.start)..offset(range.end));
        let mut chunks = Vec::new();
        while !rest.is_empty() {
            chunks.push(Ok(rest.split_to(rest.len().min(CHUNK_BYTES))));
        }
        if corrupt {
            chunks.pop();
            chunks.push(Err(BlobError::Corrupt { place, found }));
        }
        Ok(BlobReader { size, range, chunks: stream::iter(chunks).boxed() })
    }

    async fn size(&self, place: Place) -> Result<Option<u64>, BlobError> {
        Ok(self.places().get(&place).map(|bytes| bytes.len() as u64))
    }

    async fn delete(&self, place: Place) -> Result<(), BlobError> {
        self.places().remove(&place);
        Ok(())
    }

    async fn list(&self) -> Result<BoxStream<'static, Result<Listed, BlobError>>, BlobError> {
        let listed: Vec<_> = self
            .places()
            .iter()
            .map(|(place, bytes)| Ok(Listed { place: *place, size: bytes.len() as u64 }))
            .collect();
        Ok(stream::iter(listed).boxed())
    }

    fn local_path(&self, _place: Place) -> Option<PathBuf> {
        None
    }
}

fn offset(value: u64) -> usize {
    usize::try_from(value).expect("an offset into bytes in memory fits an address")
}

#[derive(Debug)]
struct MemoryUpload {
    blobs: MemoryBlobs,
    expected: Option<Place>,
    size_max: u64,
    bytes: Vec<u8>,
}

#[async_trait]
impl Upload for MemoryUpload {
    async fn write(&mut self, piece: Bytes) -> Result<(), BlobError> {
        if (self.bytes.len() + piece.len()) as u64 > self.size_max {
            return Err(BlobError::TooLarge { size_max: self.size_max });
        }
        self.bytes.extend_from_slice(&piece);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<Box<dyn Staged>, BlobError> {
        let mut hasher = Hasher::new();
        hasher.update(&self.bytes);
        let digest = hasher.finish();
        if let Some(place) = self.expected
            && place.digest != digest
        {
            return Err(BlobError::Mismatch { expected: place.digest, got: digest });
        }
        let Self { blobs, expected, bytes, .. } = *self;
        Ok(Box::new(MemoryStaged { blobs, expected, digest, bytes: bytes.into() }))
    }
}

#[derive(Debug)]
struct MemoryStaged {
    blobs: MemoryBlobs,
    expected: Option<Place>,
    digest: Digest,
    bytes: Bytes,
}

#[async_trait]
impl Staged for MemoryStaged {
    fn digest(&self) -> Digest {
        self.digest
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn place(self: Box<Self>, generation: Number) -> Result<Place, BlobError> {
        let place = Place::new(self.digest, generation);
        assert!(
            self.expected.is_none_or(|expected| expected == place),
            "an upload begun for one generation is placed at another"
        );
        let mut places = self.blobs.places();
        let there = places.entry(place).or_insert_with(|| self.bytes.clone());
        if there.len() == self.bytes.len() {
            return Ok(place);
        }
        let found = format!("{} bytes are there, the blob has {}", there.len(), self.bytes.len());
        Err(BlobError::Corrupt { place, found })
    }
}
