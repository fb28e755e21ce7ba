//! The rows of one table as one transaction knows them: as fetched, and as changed since.

use std::collections::BTreeMap;

/// Rows by their key.
///
/// Invariant: what was fetched is the row as the database has it for as long as the transaction
/// runs: it is locked, or only ever inserted, which a unique index watches.
#[derive(Debug)]
pub(super) struct Shelf<K, V> {
    fetched: BTreeMap<K, Option<V>>,
    changed: BTreeMap<K, V>,
    /// What stood in `changed` before each change, oldest first.
    undo: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Self {
        Self { fetched: BTreeMap::new(), changed: BTreeMap::new(), undo: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Shelf<K, V> {
    /// Takes in a row, or that there is none.
    pub(super) fn fetch(&mut self, key: K, row: Option<V>) {
        self.fetched.insert(key, row);
    }

    /// The row as it is now; the outer none says that nobody has looked yet.
    #[expect(clippy::option_option, reason = "not looked at and not there are two things")]
    pub(super) fn get(&self, key: &K) -> Option<Option<&V>> {
        match self.changed.get(key) {
            Some(row) => Some(Some(row)),
            None => self.fetched.get(key).map(Option::as_ref),
        }
    }

    /// The row as it is now, if it is known to be there.
    pub(super) fn present(&self, key: &K) -> Option<&V> {
        self.get(key).flatten()
    }

    /// The row as it was fetched.
    pub(super) fn before(&self, key: &K) -> Option<&V> {
        self.fetched.get(key)?.as_ref()
    }

    /// Changes a row, or makes it.
    pub(super) fn put(&mut self, key: K, row: V) {
        let before = self.changed.insert(key.clone(), row);
        self.undo.push((key, before));
    }

    /// Rows that were changed or made, by key, each with what was fetched of it.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&K, Option<&V>, &V)> {
        self.changed.iter().map(|(key, row)| (key, self.before(key), row))
    }

    /// The keys of rows that are known to be there.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        let fetched = self.fetched.iter().filter(|(_, row)| row.is_some()).map(|(key, _)| key);
        fetched.chain(self.changed.keys().filter(|key| self.before(key).is_none()))
    }

    /// A place to roll back to.
    pub(super) fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Takes back the changes since the mark.
    pub(super) fn roll_back_to(&mut self, mark: usize) {
        while self.undo.len() > mark {
            let (key, before) = self.undo.pop().expect("longer than the mark");
            match before {
                Some(row) => drop(self.changed.insert(key, row)),
                None => drop(self.changed.remove(&key)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
