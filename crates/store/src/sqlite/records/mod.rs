//! One file a kind of record: its columns, encode, decode.

pub(super) mod attempt;
pub(super) mod blob;
pub(super) mod claim;
pub(super) mod collection;
pub(super) mod job;
pub(super) mod journal;
pub(super) mod lock;
pub(super) mod meta;
pub(super) mod object;
pub(super) mod outbox;
pub(super) mod publication;
pub(super) mod request;
pub(super) mod submission;
