//! Immutable blobs named by their digest, and the fenced register.
//!
//! Two kinds of storage that are safe for opposite reasons. A *blob* ([`Blobs`]) never changes:
//! writing it twice is harmless, so a render may be repeated freely. A *register* is the smallest
//! thing that does change, one fence and one pointer, and changes only by compare-and-swap.
//!
//! Must not know: SQL, HTTP, jobs' states. Which blobs exist, and which may be deleted, is the
//! store's to say; this crate is told a [`Place`] and writes, reads or deletes just that. Time and
//! randomness are arguments.

pub mod blobs;
pub mod bucket;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod error;
pub mod local;
pub mod location;
pub mod mark;
pub mod memory;
pub mod objects;
pub mod place;
pub mod register;
pub mod transfer;

pub use blobs::{BlobReader, Blobs, Shown, Staged, Upload};
pub use error::{BlobError, BlobErrorKind};
pub use local::LocalBlobs;
pub use location::{Location, Opened};
pub use mark::Mark;
pub use memory::MemoryBlobs;
pub use objects::ObjectBlobs;
pub use place::{ByteRange, Place};
pub use transfer::{read_to_vec, write, write_unnamed};
