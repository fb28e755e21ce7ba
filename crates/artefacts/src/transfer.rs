//! Conveniences over [`Blobs`]: whole transfers, still piece by piece.

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::{BlobError, Blobs, ByteRange, Place, Staged, Upload};

/// How many bytes are read from a source, and written or read at once, by default.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Writes all of `source` to `place`; answers the size in bytes, when it is durable.
pub async fn write(
    blobs: &dyn Blobs,
    place: Place,
    size_max: u64,
    source: impl AsyncRead + Send + Unpin,
) -> Result<u64, BlobError> {
    let mut upload = blobs.begin(Some(place), size_max).await?;
    pour(upload.as_mut(), source).await?;
    let staged = upload.finish().await?;
    let size = staged.size();
    staged.place(place.generation).await?;
    Ok(size)
}

/// Takes in all of `source`, whose digest is not known before. The caller draws a generation for
/// the digest and calls [`Staged::place`].
pub async fn write_unnamed(
    blobs: &dyn Blobs,
    size_max: u64,
    source: impl AsyncRead + Send + Unpin,
) -> Result<Box<dyn Staged>, BlobError> {
    let mut upload = blobs.begin(None, size_max).await?;
    pour(upload.as_mut(), source).await?;
    upload.finish().await
}

async fn pour(
    upload: &mut dyn Upload,
    mut source: impl AsyncRead + Send + Unpin,
) -> Result<(), BlobError> {
    loop {
        let mut piece = BytesMut::with_capacity(CHUNK_BYTES);
        while piece.len() < piece.capacity() {
            if source.read_buf(&mut piece).await.map_err(BlobError::Source)? == 0 {
                break;
            }
        }
        if piece.is_empty() {
            return Ok(());
        }
        upload.write(piece.freeze()).await?;
    }
}

/// Reads a range into memory: for manifests and tests, not for films.
pub async fn read_to_vec(
    blobs: &dyn Blobs,
    place: Place,
    range: ByteRange,
) -> Result<Vec<u8>, BlobError> {
    let reader = blobs.open(place, range).await?;
    reader
        .chunks
        .try_fold(Vec::new(), |mut all: Vec<u8>, chunk: Bytes| async move {
            all.extend_from_slice(&chunk);
            Ok(all)
        })
        .await
}
