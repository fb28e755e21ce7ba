//! One upload into the folder: pieces in, hashed while written, linked at the end.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use palisade_core::{Digest, Number, digest::Hasher};

use super::{
    Shared, blocking,
    steps::{self, Arriving},
    sync_folder,
};
use crate::{BlobError, Place, Staged, Upload, transfer::CHUNK_BYTES};

/// An upload under way.
#[derive(Debug)]
pub(super) struct LocalUpload {
    shared: Arc<Shared>,
    expected: Option<Place>,
    size_max: u64,
    /// How many bytes came in so far, those not yet written included.
    size: u64,
    /// None while its work is on the blocking pool, and for good after an error.
    sink: Option<Sink>,
    /// Small pieces wait here until a chunk's worth is there: one trip to the pool for each.
    waiting: Vec<Bytes>,
    waiting_bytes: usize,
}

#[derive(Debug)]
struct Sink {
    arriving: Arriving,
    hasher: Hasher,
}

impl Sink {
    fn take(&mut self, pieces: &[Bytes]) -> Result<(), BlobError> {
        for piece in pieces {
            self.hasher.update(piece);
            steps::append(&mut self.arriving, piece)?;
        }
        Ok(())
    }
}

impl LocalUpload {
    pub(super) async fn begin(
        shared: Arc<Shared>,
        expected: Option<Place>,
        size_max: u64,
    ) -> Result<Self, BlobError> {
        let opener = Arc::clone(&shared);
        let arriving =
            blocking(move || steps::create(&opener.layout.arriving(), &opener.serial)).await?;
        let sink = Some(Sink { arriving, hasher: Hasher::new() });
        Ok(Self {
            shared,
            expected,
            size_max,
            size: 0,
            sink,
            waiting: Vec::new(),
            waiting_bytes: 0,
        })
    }

    fn take_sink(&mut self) -> Sink {
        self.sink.take().expect("an upload is dropped after an error, and not written to again")
    }
}

#[async_trait]
impl Upload for LocalUpload {
    async fn write(&mut self, piece: Bytes) -> Result<(), BlobError> {
        self.size = self.size.saturating_add(piece.len() as u64);
        if self.size > self.size_max {
            self.sink = None;
            return Err(BlobError::TooLarge { size_max: self.size_max });
        }
        self.waiting_bytes += piece.len();
        self.waiting.push(piece);
        if self.waiting_bytes < CHUNK_BYTES {
            return Ok(());
        }
        let mut sink = self.take_sink();
        let pieces = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        self.sink = Some(
            blocking(move || {
                sink.take(&pieces)?;
                Ok(sink)
            })
            .await?,
        );
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<Box<dyn Staged>, BlobError> {
        let mut sink = self.take_sink();
        let pieces = std::mem::take(&mut self.waiting);
        let (shared, expected, size) = (Arc::clone(&self.shared), self.expected, self.size);
        blocking(move || {
            sink.take(&pieces)?;
            let digest = sink.hasher.finish();
            if let Some(place) = expected
                && place.digest != digest
            {
                return Err(BlobError::Mismatch { expected: place.digest, got: digest });
            }
            steps::settle(&sink.arriving)?;
            let staged = LocalStaged { shared, expected, arriving: sink.arriving, digest, size };
            Ok(Box::new(staged) as Box<dyn Staged>)
        })
        .await
    }
}

/// Settled bytes that have no place yet.
#[derive(Debug)]
struct LocalStaged {
    shared: Arc<Shared>,
    expected: Option<Place>,
    arriving: Arriving,
    digest: Digest,
    size: u64,
}

#[async_trait]
impl Staged for LocalStaged {
    fn digest(&self) -> Digest {
        self.digest
    }

    fn size(&self) -> u64 {
        self.size
    }

    async fn place(self: Box<Self>, generation: Number) -> Result<Place, BlobError> {
        let place = Place::new(self.digest, generation);
        assert!(
            self.expected.is_none_or(|expected| expected == place),
            "an upload begun for one generation is placed at another"
        );
        blocking(move || {
            let file = self.shared.layout.file(place);
            steps::link(&self.arriving, place, &file, self.size)?;
            let folder = self.shared.layout.folder(place);
            drop(self);
            // Also when another writer's link was there: it may not have come this far.
            sync_folder(&folder)?;
            Ok(place)
        })
        .await
    }
}
