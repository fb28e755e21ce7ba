//! Records in SQLite: the embedded store.
//!
//! [`SqliteEngine`] is synchronous and knows no clock: commands and an instant in, answers and
//! journal entries out. [`SqliteStore`] puts it on a thread of its own, which takes whatever
//! requests are waiting, runs them in one transaction, commits once and answers all (group
//! commit); readers have connections of their own.
//!
//! Must not know: HTTP, processes, clocks other than the one it is given.

mod batch;
mod cache;
mod clock;
mod collection;
mod due;
mod effects;
mod engine;
mod high_water;
mod lock;
mod open;
mod outbox;
mod reading;
mod records;
mod renewals;
mod retention;
mod snapshot;
mod store;
mod tables;
mod values;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

pub use batch::Batch;
pub use engine::{ChangedLeases, GAP_MS, SqliteEngine};
pub use high_water::raise_tokens;
pub use open::{OpenError, Place};
pub use snapshot::SqliteSnapshot;
pub use store::SqliteStore;
