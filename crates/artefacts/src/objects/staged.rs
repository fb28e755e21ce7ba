//! Giving bytes their place: in one request, or by making one object of the parts.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::{Error, PutMode, PutOptions, PutPayload};
use palisade_core::{Digest, Number};

use super::{Shared, parts::Parts};
use crate::{BlobError, Place, Staged};

/// Bytes that are whole and compared, and at no place yet.
#[derive(Debug)]
pub(super) struct ObjectStaged {
    pub(super) shared: Arc<Shared>,
    pub(super) place: Place,
    pub(super) size: u64,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// Here, in memory.
    Whole(PutPayload),
    /// There, in parts.
    Parts(Parts),
}

impl ObjectStaged {
    /// Whether the bytes are there already.
    ///
    /// What is there came the same way: whole, and with the digest that the place names. So the
    /// right size is success; another size is damage from outside.
    async fn is_there(&self) -> Result<bool, BlobError> {
        match self.shared.size(self.place).await? {
            None => Ok(false),
            Some(there) if there == self.size => Ok(true),
            Some(there) => Err(BlobError::Corrupt {
                place: self.place,
                found: format!("{there} bytes are there, the blob has {}", self.size),
            }),
        }
    }

    /// Settles an answer that was an error by what is there now: the bytes may have been placed,
    /// by the request whose answer got lost, or by another writer.
    async fn settle(&self, error: Error) -> Result<(), BlobError> {
        if self.is_there().await? {
            return Ok(());
        }
        Err(self.shared.failed("place", self.place, error))
    }

    async fn place_whole(&self, payload: PutPayload) -> Result<(), BlobError> {
        let bucket = &self.shared.bucket;
        // Replacing would bring the same bytes; but what is damaged should be found, not hidden.
        if !bucket.is_conditional && self.is_there().await? {
            return Ok(());
        }
        let mode = if bucket.is_conditional { PutMode::Create } else { PutMode::Overwrite };
        let options = PutOptions { mode, ..PutOptions::default() };
        let path = self.shared.path(self.place);
        match bucket.store.put_opts(&path, payload, options).await {
            Ok(_) => Ok(()),
            Err(error) => self.settle(error).await,
        }
    }

    /// Parts cannot be made one object on a condition everywhere. Two writers that come through
    /// here at once replace the same bytes by the same bytes, whole.
    async fn place_parts(&self, mut parts: Parts) -> Result<(), BlobError> {
        if self.is_there().await? {
            parts.abort().await;
            return Ok(());
        }
        match parts.complete().await {
            Ok(()) => Ok(()),
            Err(error) => self.settle(error).await,
        }
    }
}

#[async_trait]
impl Staged for ObjectStaged {
    fn digest(&self) -> Digest {
        self.place.digest
    }

    fn size(&self) -> u64 {
        self.size
    }

    async fn place(mut self: Box<Self>, generation: Number) -> Result<Place, BlobError> {
        assert!(
            self.place.generation == generation,
            "an upload begun for one generation is placed at another"
        );
        let nothing = Content::Whole(PutPayload::default());
        match std::mem::replace(&mut self.content, nothing) {
            Content::Whole(payload) => self.place_whole(payload).await?,
            Content::Parts(parts) => self.place_parts(parts).await?,
        }
        Ok(self.place)
    }
}
