//! Names as small numbers, and back. A name that is no longer needed gives its number back, so
//! that memory follows the names in use and not the names ever seen.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Interned names.
///
/// Its hash table is never walked, so its order cannot show.
pub(crate) struct Names {
    hasher: FixedState,
    table: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    text: Box<str>,
    hash: u64,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self {
            hasher: FixedState::default(),
            table: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The number of `text`, a new one if it is not known.
    pub(crate) fn intern(&mut self, text: &str) -> u32 {
        let hash = self.hasher.hash_one(text);
        let slots = &self.slots;
        if let Some(id) = self.table.find(hash, |id| *slots[*id as usize].text == *text) {
            return *id;
        }
        let slot = Slot { text: text.into(), hash };
        let id = if let Some(id) = self.free.pop() {
            self.slots[id as usize] = slot;
            id
        } else {
            self.slots.push(slot);
            u32::try_from(self.slots.len() - 1).expect("fewer names in use than fit in 32 bits")
        };
        let slots = &self.slots;
        self.table.insert_unique(hash, id, |id| slots[*id as usize].hash);
        id
    }

    /// The number of `text`, if it is known.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.table.find(hash, |id| *self.slots[*id as usize].text == *text).copied()
    }

    /// The name of a number in use.
    pub(crate) fn text(&self, id: u32) -> &str {
        &self.slots[id as usize].text
    }

    /// A hash of the name that is the same in every run.
    pub(crate) fn hash(&self, id: u32) -> u64 {
        self.slots[id as usize].hash
    }

    /// Gives the number back. The caller must not use it any more.
    pub(crate) fn retire(&mut self, id: u32) {
        let hash = self.slots[id as usize].hash;
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == id) {
            entry.remove();
            self.slots[id as usize].text = Box::default();
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests;
