//! The records as they are at one moment, for an audit: of a copy, or of a store that others serve
//! meanwhile. Nothing is written, and nobody is held up.

use std::collections::BTreeMap;

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    blob::Blob,
    history::Event,
    job::Job,
    lock::{Lock, LockGrant},
    object::Object,
    outbox::{Delivery, Endpoint},
};

use crate::fault::Fault;

/// Records that are read at once.
pub(crate) const ROWS_AT_ONCE: usize = 1_000;

/// A read of one moment. Everything blocks: call it where that is allowed. What the serving
/// processes keep in memory alone, and what the engine may lose (renewals), is not in it.
pub trait Snapshot {
    /// The last number that was drawn; at least as high as any that is in the records.
    fn counter(&self) -> Result<Number, Fault>;

    /// Whether one writer draws all numbers, so that they rise in the order of commits. Many servers
    /// commit in another order than they draw in, but for each resource alone.
    fn has_one_writer(&self) -> bool;

    /// How far the store's clock had come.
    fn clock(&self) -> Result<Timestamp, Fault>;

    /// Every job, by its id. One that cannot be read is told as [`Fault::Corrupt`], and the others
    /// follow.
    fn jobs(&self, sink: &mut dyn FnMut(JobId, Result<Job, Fault>)) -> Result<(), Fault>;

    /// All that the journal still has, in its order, with each entry's position.
    fn journal(&self, sink: &mut dyn FnMut(u64, &Event)) -> Result<(), Fault>;

    /// Every lock, by its name, without those who wait.
    fn locks(&self, sink: &mut dyn FnMut(&Lock)) -> Result<(), Fault>;

    /// What is kept of the locks' grants, by rising token.
    fn lock_grants(&self, sink: &mut dyn FnMut(&LockGrant)) -> Result<(), Fault>;

    /// Every fenced object, by its key, tombstones too.
    fn objects(&self, sink: &mut dyn FnMut(&Object)) -> Result<(), Fault>;

    /// Everybody who wants to be told, by id.
    fn endpoints(&self) -> Result<Vec<Endpoint>, Fault>;

    /// Every notification, by rising number.
    fn deliveries(&self, sink: &mut dyn FnMut(&Delivery)) -> Result<(), Fault>;

    /// The publications that are due, by their submissions, each with its job.
    fn publications_due(&self) -> Result<BTreeMap<Number, JobId>, Fault>;

    /// A digest's newest generation.
    fn blob(&self, digest: Digest) -> Result<Option<Blob>, Fault>;
}
