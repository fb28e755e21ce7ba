//! Blobs as objects in a bucket, over any `ObjectStore`.
//!
//! An object store places an object whole or not at all, and answers when it is durable, so there
//! is less to do here than on a disk. What is left: the digest is ours to compare, before anything
//! is placed; what is large goes in parts, so that memory stays bounded; parts that will not be
//! placed are taken back; and an answer that got lost is settled by a look at what is there.
//!
//! Must not know: which client stands behind the `ObjectStore` (that is `bucket`'s).

mod parts;
mod reader;
mod spool;
mod staged;
#[cfg(test)]
mod tests;
mod upload;

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, future, stream::BoxStream};
use object_store::{
    Error, ObjectStoreExt as _,
    path::Path,
    signer::{Method, SignedUrlOptions},
};
use palisade_core::Timestamp;

use crate::{
    BlobError, BlobReader, Blobs, ByteRange, Place, Shown, Upload,
    blobs::Listed,
    bucket::{Bucket, Trouble},
};

/// Blobs below one prefix of a bucket. Cheap to clone; clones are the same place.
#[derive(Debug, Clone)]
pub struct ObjectBlobs {
    shared: Arc<Shared>,
}

/// What uploads and readers need of their backend.
#[derive(Debug)]
struct Shared {
    bucket: Bucket,
    /// The blobs' own: registers live elsewhere.
    prefix: Path,
    /// What is smaller goes in one request; the size of the first parts of what is not.
    part_bytes: usize,
}

impl ObjectBlobs {
    /// Blobs below the bucket's prefix, at `blobs/DIGEST/GENERATION`.
    pub fn new(bucket: Bucket) -> Self {
        Self::with_part_bytes(bucket, parts::PART_BYTES)
    }

    fn with_part_bytes(bucket: Bucket, part_bytes: usize) -> Self {
        let prefix = bucket.prefix.clone().join("blobs");
        Self { shared: Arc::new(Shared { bucket, prefix, part_bytes }) }
    }
}

impl Shared {
    fn path(&self, place: Place) -> Path {
        self.prefix.clone().join(place.digest.to_string()).join(place.generation.to_string())
    }

    /// The size of what is at a place.
    async fn size(&self, place: Place) -> Result<Option<u64>, BlobError> {
        match self.bucket.store.head(&self.path(place)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("look at", place, error)),
        }
    }

    fn failed(&self, doing: &'static str, place: Place, error: Error) -> BlobError {
        match error {
            Error::NotFound { .. } => BlobError::NotFound(place),
            error => BlobError::Store {
                store: self.bucket.name.clone(),
                doing,
                what: self.path(place).to_string(),
                source: Box::new(Trouble::from(error)),
            },
        }
    }

    /// The place that an object's path says.
    fn place_of(&self, path: &Path) -> Option<Place> {
        let mut rest = path.prefix_match(&self.prefix)?;
        let (digest, generation) = (rest.next()?, rest.next()?);
        let text = format!("{}/{}", digest.as_ref(), generation.as_ref());
        if rest.next().is_some() { None } else { text.parse().ok() }
    }
}

#[async_trait]
impl Blobs for ObjectBlobs {
    async fn begin(
        &self,
        expected: Option<Place>,
        size_max: u64,
    ) -> Result<Box<dyn Upload>, BlobError> {
        let shared = Arc::clone(&self.shared);
        Ok(match expected {
            Some(place) => Box::new(upload::ObjectUpload::new(shared, place, size_max)),
            None => Box::new(spool::SpooledUpload::new(shared, size_max)),
        })
    }

    async fn open(&self, place: Place, range: ByteRange) -> Result<BlobReader, BlobError> {
        reader::open(Arc::clone(&self.shared), place, range).await
    }

    async fn size(&self, place: Place) -> Result<Option<u64>, BlobError> {
        self.shared.size(place).await
    }

    async fn delete(&self, place: Place) -> Result<(), BlobError> {
        match self.shared.bucket.store.delete(&self.shared.path(place)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.shared.failed("delete", place, error)),
        }
    }

    async fn list(&self) -> Result<BoxStream<'static, Result<Listed, BlobError>>, BlobError> {
        let shared = Arc::clone(&self.shared);
        let store = shared.bucket.name.clone();
        let what = shared.prefix.to_string();
        let failed = move |error: Error| {
            let (store, what) = (store.clone(), what.clone());
            BlobError::Store { store, doing: "list", what, source: Box::new(Trouble::from(error)) }
        };
        let found = self.shared.bucket.store.list(Some(&self.shared.prefix)).map_err(failed);
        let places = found.try_filter_map(move |meta| {
            let listed = shared.place_of(&meta.location);
            if listed.is_none() {
                tracing::warn!(object = %meta.location, "an object among the blobs that is none");
            }
            future::ok(listed.map(|place| Listed { place, size: meta.size }))
        });
        Ok(places.boxed())
    }

    fn local_path(&self, _place: Place) -> Option<PathBuf> {
        None
    }

    async fn presigned(
        &self,
        place: Place,
        shown: Shown<'_>,
        ttl: Duration,
    ) -> Result<Option<String>, BlobError> {
        let Some(signer) = &self.shared.bucket.signer else { return Ok(None) };
        let options = if signer.takes_overrides {
            SignedUrlOptions::new().with_query([
                ("response-content-type", shown.media_type),
                ("response-content-disposition", shown.disposition),
            ])
        } else {
            SignedUrlOptions::new()
        };
        let path = self.shared.path(place);
        let signed = signer.signer.signed_url_opts(Method::GET, &path, ttl, &options).await;
        match signed {
            Ok(url) => Ok(Some(url.into())),
            Err(error) => Err(self.shared.failed("sign an address of", place, error)),
        }
    }

    async fn sweep(&self, before: Timestamp) -> Result<u64, BlobError> {
        let Some(uploads) = &self.shared.bucket.uploads else { return Ok(0) };
        let prefix = &self.shared.prefix;
        uploads.abort_older(prefix, before).await.map_err(|source| BlobError::Store {
            store: self.shared.bucket.name.clone(),
            doing: "sweep the unfinished uploads below",
            what: prefix.to_string(),
            source,
        })
    }
}
