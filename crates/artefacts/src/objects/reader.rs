//! Reading an object piece by piece, checking the digest when the whole is read.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream, stream::BoxStream};
use object_store::{Error, GetOptions, GetRange};
use palisade_core::digest::Hasher;

use super::Shared;
use crate::{BlobError, BlobReader, ByteRange, Place, transfer::CHUNK_BYTES};

/// Opens a blob. A connection that breaks in the middle is taken up again by the client, as far as
/// its retries go.
pub(super) async fn open(
    shared: Arc<Shared>,
    place: Place,
    range: ByteRange,
) -> Result<BlobReader, BlobError> {
    let size = shared.size(place).await?.ok_or(BlobError::NotFound(place))?;
    let range = range.within(size).ok_or(BlobError::OutOfRange { place, size })?;
    let whole = range == (0..size);
    let incoming = if range.is_empty() {
        // Stores refuse a range of an empty object.
        stream::empty().boxed()
    } else {
        let wanted = GetRange::Bounded(range.clone());
        let options = GetOptions { range: Some(wanted), ..GetOptions::default() };
        let got = shared.bucket.store.get_opts(&shared.path(place), options).await;
        got.map_err(|error| shared.failed("read", place, error))?.into_stream()
    };
    let cursor = Cursor {
        shared,
        place,
        incoming,
        waiting: Bytes::new(),
        at: range.start,
        rest: range.end - range.start,
        hasher: whole.then(Hasher::new),
    };
    if cursor.rest == 0 {
        // No chunk will come, so nothing else would check it.
        cursor.check()?;
    }
    let chunks = stream::try_unfold(cursor, Cursor::next_chunk).boxed();
    Ok(BlobReader { size, range, chunks })
}

struct Cursor {
    shared: Arc<Shared>,
    place: Place,
    incoming: BoxStream<'static, Result<Bytes, Error>>,
    /// Arrived, and not given out yet.
    waiting: Bytes,
    at: u64,
    rest: u64,
    /// Set when the whole blob is read.
    hasher: Option<Hasher>,
}

impl Cursor {
    async fn next_chunk(mut self) -> Result<Option<(Bytes, Self)>, BlobError> {
        if self.rest == 0 {
            return Ok(None);
        }
        while self.waiting.is_empty() {
            self.waiting = match self.incoming.next().await {
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) => return Err(self.shared.failed("read", self.place, error)),
                None => {
                    let found = format!("it ends at byte {}", self.at);
                    return Err(BlobError::Corrupt { place: self.place, found });
                }
            };
        }
        let room = usize::try_from(self.rest).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let chunk = self.waiting.split_to(self.waiting.len().min(room));
        self.at += chunk.len() as u64;
        self.rest -= chunk.len() as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&chunk);
        }
        if self.rest == 0 {
            self.check()?;
        }
        Ok(Some((chunk, self)))
    }

    /// Compares the digest of all that was read, if it was the whole.
    fn check(&self) -> Result<(), BlobError> {
        let Some(digest) = self.hasher.as_ref().map(Hasher::finish) else { return Ok(()) };
        if digest == self.place.digest {
            return Ok(());
        }
        let found = format!("the bytes have the digest {digest}");
        Err(BlobError::Corrupt { place: self.place, found })
    }
}
