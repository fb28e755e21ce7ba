//! The contract of a store with compare-and-swap, as small as a register needs it.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use super::Key;

/// The most bytes that a cell may have. A record has a few hundred, and a pointer up to 4 KiB.
pub(super) const CELL_BYTES_MAX: usize = 64 * 1024;

/// Small cells of bytes that change only by compare-and-swap.
///
/// What every backend promises:
///
/// - **One winner.** Of any number of swaps that expect the same version, or absence, at most one
///   is done; a swap that expects a version that is not there is never done, nor is one that
///   expects a version of a cell that does not exist.
/// - **Durable, then answered.** What [`Swap::Swapped`] was said of, and what a read has brought,
///   survives a crash and a power cut.
/// - **Reads are current.** A read that begins after a swap was answered brings that swap's bytes
///   or later ones.
/// - **Honest doubt.** [`Swap::NotDone`] means that it was not done *and will not be*. Whatever is
///   not known for sure is [`Swap::Unknown`].
///
/// What it need not promise: that equal bytes get different versions (an `ETag` is a hash). Whoever
/// writes sees to it that no two writes of a cell have equal bytes. Cells are never deleted: a
/// fence outlives what it guards.
#[async_trait]
pub trait CompareAndSwap: fmt::Debug + Send + Sync {
    /// Names the store for people, in errors (`s3://bucket/prefix`).
    fn name(&self) -> String;

    /// The cell's bytes and version; none when it was never written.
    async fn read(&self, key: &Key) -> Result<Option<Cell>, CellError>;

    /// Writes `bytes` on the condition that the cell's version is `expected`, or that there is no
    /// cell if that is none. May land although the caller has stopped waiting.
    async fn swap(&self, key: &Key, expected: Option<&Version>, bytes: Bytes) -> Swap;
}

/// A cell as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// What it holds.
    pub bytes: Bytes,
    /// To be given back in a swap.
    pub version: Version,
}

/// A version of a cell, meaningful to its store alone. Stores differ in which of the two they use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The entity tag, as the store spells it.
    pub e_tag: Option<String>,
    /// The version or generation, as the store spells it.
    pub version: Option<String>,
}

/// What became of a swap.
#[derive(Debug)]
pub enum Swap {
    /// It was done, durably.
    Swapped,
    /// It was not done: the version is another. (Or it *was* done by an earlier sending of the same
    /// request, inside the backend; reading again tells.)
    Conflict,
    /// It was not done and will not be.
    NotDone(CellError),
    /// It may have been done, or may still be.
    Unknown(CellError),
}

/// A store that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{store} could not {doing}")]
pub struct CellError {
    /// The store's name.
    pub store: String,
    /// What was being done, as a verb phrase.
    pub doing: &'static str,
    /// What it said.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl CellError {
    /// An error of the store called `store`.
    pub fn new(
        store: String,
        doing: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { store, doing, source: source.into() }
    }
}
