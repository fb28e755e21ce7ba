//! Uploads whose digest is known only at their end: kept here until their place is known, small
//! ones in memory, larger ones in a file without a name.
//!
//! Not in the bucket: to move an object there means to copy it, which stores limit to 5 GB.

use std::{io, sync::Arc};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use palisade_core::{Digest, Number, digest::Hasher};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};

use super::{Shared, upload::ObjectUpload};
use crate::{BlobError, Place, Staged, Upload, transfer::CHUNK_BYTES};

/// An upload under way.
#[derive(Debug)]
pub(super) struct SpooledUpload {
    shared: Arc<Shared>,
    size_max: u64,
    size: u64,
    hasher: Hasher,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    Memory(BytesMut),
    /// It has no name, so it goes with the process, however that ends.
    File(tokio::fs::File),
}

impl SpooledUpload {
    pub(super) fn new(shared: Arc<Shared>, size_max: u64) -> Self {
        let kept = Kept::Memory(BytesMut::new());
        Self { shared, size_max, size: 0, hasher: Hasher::new(), kept }
    }
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> BlobError {
    move |error| BlobError::io(doing, std::env::temp_dir(), error)
}

impl Kept {
    async fn append(&mut self, piece: &Bytes, memory_max: usize) -> Result<(), BlobError> {
        let memory = match self {
            Self::File(file) => {
                return file.write_all(piece).await.map_err(failed("keep an upload in"));
            }
            Self::Memory(memory) if memory.len() + piece.len() <= memory_max => {
                memory.extend_from_slice(piece);
                return Ok(());
            }
            Self::Memory(memory) => std::mem::take(memory),
        };
        let file = crate::local::blocking(|| {
            tempfile::tempfile().map_err(failed("make a temporary file in"))
        });
        let mut file = tokio::fs::File::from_std(file.await?);
        file.write_all(&memory).await.map_err(failed("keep an upload in"))?;
        file.write_all(piece).await.map_err(failed("keep an upload in"))?;
        *self = Self::File(file);
        Ok(())
    }
}

#[async_trait]
impl Upload for SpooledUpload {
    async fn write(&mut self, piece: Bytes) -> Result<(), BlobError> {
        self.size = self.size.saturating_add(piece.len() as u64);
        if self.size > self.size_max {
            return Err(BlobError::TooLarge { size_max: self.size_max });
        }
        self.hasher.update(&piece);
        self.kept.append(&piece, self.shared.part_bytes).await
    }

    async fn finish(mut self: Box<Self>) -> Result<Box<dyn Staged>, BlobError> {
        if let Kept::File(file) = &mut self.kept {
            file.flush().await.map_err(failed("keep an upload in"))?;
        }
        let digest = self.hasher.finish();
        let Self { shared, size, kept, .. } = *self;
        Ok(Box::new(SpooledStaged { shared, digest, size, kept }))
    }
}

/// Bytes that are here, and at no place yet.
#[derive(Debug)]
struct SpooledStaged {
    shared: Arc<Shared>,
    digest: Digest,
    size: u64,
    kept: Kept,
}

#[async_trait]
impl Staged for SpooledStaged {
    fn digest(&self) -> Digest {
        self.digest
    }

    fn size(&self) -> u64 {
        self.size
    }

    async fn place(self: Box<Self>, generation: Number) -> Result<Place, BlobError> {
        let Self { shared, digest, size, kept } = *self;
        let place = Place::new(digest, generation);
        let mut upload = Box::new(ObjectUpload::new(shared, place, size));
        match kept {
            Kept::Memory(bytes) => upload.write(bytes.freeze()).await?,
            Kept::File(mut file) => {
                file.rewind().await.map_err(failed("read an upload kept in"))?;
                loop {
                    let mut piece = BytesMut::with_capacity(CHUNK_BYTES);
                    let read = file.read_buf(&mut piece).await;
                    if read.map_err(failed("read an upload kept in"))? == 0 {
                        break;
                    }
                    upload.write(piece.freeze()).await?;
                }
            }
        }
        upload.finish().await?.place(generation).await
    }
}
