//! What can go wrong with a blob, told apart by what the caller can do about it.

use std::{io, path::PathBuf};

use palisade_core::Digest;

use crate::Place;

/// An operation on a blob that was not done.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is nothing at the place.
    #[error("there is no blob at {0}")]
    NotFound(Place),
    /// What is stored is not what its name says.
    #[error("the blob at {place} is corrupt: {found}")]
    Corrupt {
        /// Where.
        place: Place,
        /// What was found instead.
        found: String,
    },
    /// The bytes that arrived are not those that were announced. Nothing was kept.
    #[error("the bytes that arrived have the digest {got}, announced was {expected}")]
    Mismatch {
        /// The digest announced.
        expected: Digest,
        /// The digest of what arrived.
        got: Digest,
    },
    /// More bytes arrived than were allowed. Nothing was kept.
    #[error("more than the {size_max} bytes arrived that a blob may have here")]
    TooLarge {
        /// The limit, in bytes.
        size_max: u64,
    },
    /// The range names no byte of the blob.
    #[error("no byte of the {size} bytes of {place} is in the range asked for")]
    OutOfRange {
        /// Where.
        place: Place,
        /// The blob's size, in bytes.
        size: u64,
    },
    /// No room (or quota) left. Nothing was kept.
    #[error("no space left for blobs at {}", path.display())]
    DiskFull {
        /// The file that had no room.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The source of an upload could not be read to its end. Nothing was kept.
    #[error("the source of the upload could not be read")]
    Source(#[source] io::Error),
    /// An object store did not do it: out of reach, without permission, or an answer that makes no
    /// sense. Retries within the budget have been made.
    #[error("{store} could not {doing} {what}")]
    Store {
        /// The store's name.
        store: String,
        /// What was being done, as a verb phrase.
        doing: &'static str,
        /// To which object.
        what: String,
        /// What it said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The storage failed: a missing folder, a permission, a broken disk.
    #[error("could not {doing} {}", path.display())]
    Io {
        /// What was being done, as a verb phrase.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What a caller can do about a [`BlobError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlobErrorKind {
    /// Upload it (again), or tell the asker that it is not there.
    NotFound,
    /// Raise an alarm; restore or render again. Asking again does not help.
    Corrupt,
    /// The request was wrong: another digest, too many bytes, a range beyond the end.
    Invalid,
    /// Make room, then ask again.
    DiskFull,
    /// Whoever sent the bytes stopped; they may send them again.
    Interrupted,
    /// An operator's case: permission, missing folder, broken disk, a store out of reach.
    Io,
}

impl BlobError {
    /// What the caller can do about it.
    pub const fn kind(&self) -> BlobErrorKind {
        match self {
            Self::NotFound(_) => BlobErrorKind::NotFound,
            Self::Corrupt { .. } => BlobErrorKind::Corrupt,
            Self::Mismatch { .. } | Self::TooLarge { .. } | Self::OutOfRange { .. } => {
                BlobErrorKind::Invalid
            }
            Self::DiskFull { .. } => BlobErrorKind::DiskFull,
            Self::Source(_) => BlobErrorKind::Interrupted,
            Self::Store { .. } | Self::Io { .. } => BlobErrorKind::Io,
        }
    }

    /// An IO error met while `doing` something to `path`; no room is told apart.
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path, source }
            }
            _ => Self::Io { doing, path, source },
        }
    }
}
