//! One file a kind of record: its statements, encode, decode.
//!
//! To add a table: a file here with its statements (listed in its `ALL`), a shelf in the overlay,
//! a set in `Wants`, a question and its taking in `fetch`, and a question in `flush`.

pub(super) mod blob;
pub(super) mod claim;
pub(super) mod collection;
pub(super) mod job;
pub(super) mod journal;
pub(super) mod lease;
pub(super) mod lock;
pub(super) mod object;
pub(super) mod outbox;
pub(super) mod publication;
pub(super) mod request;
pub(super) mod session;
