//! The contract of a place for immutable bytes.

use std::{fmt, path::PathBuf, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use palisade_core::{Digest, Number, Timestamp};

use crate::{BlobError, ByteRange, Place};

/// Where immutable bytes live.
///
/// What every backend promises:
///
/// - **Whole or not at all.** At a [`Place`] there is either nothing or the whole blob, at every
///   moment, for every reader, also after a crash or a power cut at any point.
/// - **Durable, then answered.** Once [`Staged::place`] has answered `Ok`, the blob survives a
///   power cut. A commit may name it from then on, and not before.
/// - **Any number of writers of one place.** They bring the same bytes; all of them succeed.
/// - **Never replaced.** Nothing that is at a place is written over.
/// - **Nothing is left of a failure.** An upload that fails, is dropped or is refused leaves no
///   bytes behind, at the latest after the next start.
///
/// What it does not know: which places are named by anybody. The store keeps a row for each place
/// and alone decides on [`Blobs::delete`].
#[async_trait]
pub trait Blobs: fmt::Debug + Send + Sync {
    /// Begins an upload of at most `size_max` bytes.
    ///
    /// `expected` is the place when it is known before (the digest was announced): a backend may
    /// then write there directly, and the digest of what arrives must be that one. None: the
    /// digest is what the bytes turn out to have.
    async fn begin(
        &self,
        expected: Option<Place>,
        size_max: u64,
    ) -> Result<Box<dyn Upload>, BlobError>;

    /// Opens the bytes of `range` at `place`.
    async fn open(&self, place: Place, range: ByteRange) -> Result<BlobReader, BlobError>;

    /// The size in bytes of what is at `place`; none when there is nothing. That something is there
    /// does not say that it is durable: only [`Staged::place`] says so.
    async fn size(&self, place: Place) -> Result<Option<u64>, BlobError>;

    /// Deletes what is at `place`, durably; that there is nothing is success too. A reader that
    /// has it open may get an error from then on, never other bytes.
    ///
    /// Only the collector calls this, for a place that is condemned and that no writer can still
    /// be writing to.
    async fn delete(&self, place: Place) -> Result<(), BlobError>;

    /// All that is stored, in no order, for audits. What comes and goes meanwhile may be missed.
    async fn list(&self) -> Result<BoxStream<'static, Result<Listed, BlobError>>, BlobError>;

    /// The file that holds the blob, when this backend keeps plain files on this machine. Whether
    /// it is there is not looked at. It is to be read only: writing to it corrupts the blob.
    fn local_path(&self, place: Place) -> Option<PathBuf>;

    /// An address at which whoever has it may read what is at `place`, ranges too, until `ttl` is
    /// over. Whether something is there is not looked at. None: this backend gives none, the bytes
    /// have to be sent through.
    async fn presigned(
        &self,
        _place: Place,
        _shown: Shown<'_>,
        _ttl: Duration,
    ) -> Result<Option<String>, BlobError> {
        Ok(None)
    }

    /// Removes what is left of uploads that nobody goes on with: of dead processes, or begun
    /// before `before`. Never touches a place. Answers how many.
    async fn sweep(&self, _before: Timestamp) -> Result<u64, BlobError> {
        Ok(0)
    }
}

/// How a blob is to be shown by who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'text> {
    /// Its media type.
    pub media_type: &'text str,
    /// The `Content-Disposition`.
    pub disposition: &'text str,
}

/// An upload under way. Dropped, it leaves nothing.
#[async_trait]
pub trait Upload: fmt::Debug + Send {
    /// Takes the next piece, of any size. After an error the upload is over: drop it.
    async fn write(&mut self, piece: Bytes) -> Result<(), BlobError>;

    /// Ends the upload: the bytes are hashed, compared with the digest announced, if one was, and
    /// durable, but at no place yet.
    async fn finish(self: Box<Self>) -> Result<Box<dyn Staged>, BlobError>;
}

/// Bytes that arrived whole and are at no place yet. Dropped, they leave nothing.
#[async_trait]
pub trait Staged: fmt::Debug + Send + Sync {
    /// The digest of the bytes.
    fn digest(&self) -> Digest;

    /// How many bytes there are.
    fn size(&self) -> u64;

    /// Puts them at `digest/generation`, durably. If the same bytes are there already (another
    /// writer of this generation brought them), that is success.
    ///
    /// # Panics
    /// When the upload began with an expected place of another generation.
    async fn place(self: Box<Self>, generation: Number) -> Result<Place, BlobError>;
}

/// A blob that a listing found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Where it is.
    pub place: Place,
    /// Its size, in bytes.
    pub size: u64,
}

/// The opened bytes of a blob.
pub struct BlobReader {
    /// The size of the whole blob, in bytes.
    pub size: u64,
    /// The bytes that `chunks` brings: offsets in the blob.
    pub range: std::ops::Range<u64>,
    /// The bytes, in order, in chunks of bounded size. When the range is the whole blob, the
    /// digest is checked before the *last* chunk is given out: whoever has got all the bytes
    /// without an error has got the blob.
    pub chunks: BoxStream<'static, Result<Bytes, BlobError>>,
}

impl fmt::Debug for BlobReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BlobReader")
            .field("size", &self.size)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}
