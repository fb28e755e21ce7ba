//! Where Palisade's records live: SQLite, PostgreSQL, and an in-memory reference.
//!
//! The rules are `core`'s; the operations over them are written once, in [`ops`], against
//! [`tables::Tables`]; an engine keeps the records and decides what a transaction is.
//!
//! Must not know: HTTP, processes.

pub mod artefacts;
pub mod command;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod events;
pub mod failure;
pub mod fault;
pub mod lease_book;
pub mod lock_book;
pub mod memory;
pub mod ops;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod query;
pub mod snapshot;
pub mod sqlite;
pub mod store;
pub mod tables;

pub use failure::Failure;
pub use snapshot::Snapshot;
pub use store::{Store, StoreExt};
