//! Cells in memory: the reference that stores are compared with. Nothing outlives the process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use palisade_core::Digest;

use super::{Cell, CellError, CompareAndSwap, Key, Swap, Version};

/// Cells in memory. Clones are the same cells.
#[derive(Debug, Clone, Default)]
pub struct MemoryCells {
    cells: Arc<Mutex<BTreeMap<Key, (u64, Bytes)>>>,
    hashed: bool,
}

impl MemoryCells {
    /// No cells yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Versions are hashes of the bytes, as an `ETag` is in most buckets: equal bytes have equal
    /// versions.
    pub fn with_hashed_versions() -> Self {
        Self { hashed: true, ..Self::default() }
    }

    fn version(&self, count: u64, bytes: &Bytes) -> Version {
        let text = if self.hashed { Digest::of(bytes).to_string() } else { count.to_string() };
        Version { e_tag: Some(text), version: None }
    }
}

#[async_trait]
impl CompareAndSwap for MemoryCells {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    async fn read(&self, key: &Key) -> Result<Option<Cell>, CellError> {
        let cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cells.get(key);
        Ok(found.map(|(count, bytes)| Cell {
            bytes: bytes.clone(),
            version: self.version(*count, bytes),
        }))
    }

    async fn swap(&self, key: &Key, expected: Option<&Version>, bytes: Bytes) -> Swap {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cells.get(key);
        if found.map(|(count, bytes)| self.version(*count, bytes)).as_ref() != expected {
            return Swap::Conflict;
        }
        let count = found.map_or(1, |(count, _)| count + 1);
        cells.insert(key.clone(), (count, bytes));
        Swap::Swapped
    }
}

#[cfg(test)]
mod tests;
