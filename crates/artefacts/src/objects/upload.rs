//! One upload whose place is known: hashed while it goes out in parts.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::{ObjectStoreExt as _, PutPayload};
use palisade_core::digest::Hasher;

use super::{
    Shared,
    parts::{self, Parts},
    staged::{Content, ObjectStaged},
};
use crate::{BlobError, Place, Staged, Upload};

/// An upload under way.
pub(super) struct ObjectUpload {
    shared: Arc<Shared>,
    place: Place,
    size_max: u64,
    size: u64,
    hasher: Hasher,
    /// The part that is being filled.
    filling: Vec<Bytes>,
    filling_bytes: usize,
    /// None while all of it fits into one request.
    parts: Option<Parts>,
}

impl ObjectUpload {
    pub(super) fn new(shared: Arc<Shared>, place: Place, size_max: u64) -> Self {
        let size_max = size_max.min(parts::size_max(shared.part_bytes));
        Self {
            shared,
            place,
            size_max,
            size: 0,
            hasher: Hasher::new(),
            filling: Vec::new(),
            filling_bytes: 0,
            parts: None,
        }
    }

    fn take_filled(&mut self) -> PutPayload {
        self.filling_bytes = 0;
        std::mem::take(&mut self.filling).into_iter().collect()
    }

    async fn send_filled(&mut self) -> Result<(), BlobError> {
        let payload = self.take_filled();
        let failed = |error| self.shared.failed("send a part of", self.place, error);
        if self.parts.is_none() {
            let path = self.shared.path(self.place);
            let upload = self.shared.bucket.store.put_multipart(&path).await.map_err(failed)?;
            self.parts = Some(Parts::new(upload));
        }
        let parts = self.parts.as_mut().expect("it was just begun");
        parts.send(payload).await.map_err(failed)
    }
}

#[async_trait]
impl Upload for ObjectUpload {
    async fn write(&mut self, mut piece: Bytes) -> Result<(), BlobError> {
        self.size = self.size.saturating_add(piece.len() as u64);
        if self.size > self.size_max {
            return Err(BlobError::TooLarge { size_max: self.size_max });
        }
        self.hasher.update(&piece);
        while !piece.is_empty() {
            let index = self.parts.as_ref().map_or(0, Parts::sent);
            let part_bytes = parts::bytes_of(self.shared.part_bytes, index);
            let room = part_bytes - self.filling_bytes;
            let taken = piece.split_to(piece.len().min(room));
            self.filling_bytes += taken.len();
            self.filling.push(taken);
            if self.filling_bytes == part_bytes {
                self.send_filled().await?;
            }
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<Box<dyn Staged>, BlobError> {
        let digest = self.hasher.finish();
        if digest != self.place.digest {
            return Err(BlobError::Mismatch { expected: self.place.digest, got: digest });
        }
        if self.parts.is_some() && self.filling_bytes > 0 {
            self.send_filled().await?;
        }
        if let Some(parts) = &mut self.parts {
            let arrived = parts.all_arrived().await;
            arrived.map_err(|error| self.shared.failed("send a part of", self.place, error))?;
        }
        let content = match self.parts.take() {
            Some(parts) => Content::Parts(parts),
            None => Content::Whole(self.take_filled()),
        };
        let (place, size) = (self.place, self.size);
        Ok(Box::new(ObjectStaged { shared: self.shared, place, size, content }))
    }
}

impl std::fmt::Debug for ObjectUpload {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ObjectUpload")
            .field("place", &self.place)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
