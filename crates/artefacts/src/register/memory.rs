//! Cells in memory: the reference that stores are compared with. Nothing outlives the process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;

use super::{Cell, CellError, CompareAndSwap, Key, Swap, Version};

/// Cells in memory. Clones are the same cells.
#[derive(Debug, Clone, Default)]
pub struct MemoryCells {
    cells: Arc<Mutex<BTreeMap<Key, (u64, Bytes)>>>,
}

impl MemoryCells {
    /// No cells yet.
    pub fn new() -> Self {
        Self::default()
    }
}

fn version(count: u64) -> Version {
    Version { e_tag: Some(count.to_string()), version: None }
}

#[async_trait]
impl CompareAndSwap for MemoryCells {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    async fn read(&self, key: &Key) -> Result<Option<Cell>, CellError> {
        let cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(cells
            .get(key)
            .map(|(count, bytes)| Cell { bytes: bytes.clone(), version: version(*count) }))
    }

    async fn swap(&self, key: &Key, expected: Option<&Version>, bytes: Bytes) -> Swap {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let count = cells.get(key).map(|(count, _)| *count);
        if count.map(version).as_ref() != expected {
            return Swap::Conflict;
        }
        cells.insert(key.clone(), (count.map_or(1, |count| count + 1), bytes));
        Swap::Swapped
    }
}

#[cfg(test)]
mod tests;
