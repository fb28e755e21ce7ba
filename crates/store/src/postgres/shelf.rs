//! The rows of one table as one transaction knows them: as fetched, and as changed since.

use std::collections::BTreeMap;

/// What stood among the changes before: nothing, a row, or that the row is to go.
type Before<V> = Option<Option<V>>;

/// Rows by their key.
///
/// Invariant: what was fetched is the row as the database has it for as long as the transaction
/// runs: it is locked, or only ever inserted, which a unique index watches.
#[derive(Debug)]
pub(super) struct Shelf<K, V> {
    fetched: BTreeMap<K, Option<V>>,
    /// None: the row is to go.
    changed: BTreeMap<K, Option<V>>,
    /// What stood in `changed` before each change, oldest first.
    undo: Vec<(K, Before<V>)>,
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
        self.changed.get(key).or_else(|| self.fetched.get(key)).map(Option::as_ref)
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
        self.change(key, Some(row));
    }

    /// Lets a row go, whether anybody has looked for it or not.
    pub(super) fn remove(&mut self, key: K) {
        self.change(key, None);
    }

    fn change(&mut self, key: K, row: Option<V>) {
        let before = self.changed.insert(key.clone(), row);
        self.undo.push((key, before));
    }

    /// Rows that were changed or made, by key, each with what was fetched of it.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&K, Option<&V>, &V)> {
        let rows = self.changed.iter().filter_map(|(key, row)| Some((key, row.as_ref()?)));
        rows.map(|(key, row)| (key, self.before(key), row))
    }

    /// The keys of rows that are to go and may be there.
    pub(super) fn removals(&self) -> impl Iterator<Item = &K> {
        let gone = self.changed.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| key);
        gone.filter(|key| !matches!(self.fetched.get(key), Some(None)))
    }

    /// Rows that are known to be there.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&K, &V)> {
        let fetched = self.fetched.iter().filter(|(key, _)| !self.changed.contains_key(key));
        let rows = fetched.chain(self.changed.iter());
        rows.filter_map(|(key, row)| Some((key, row.as_ref()?)))
    }

    /// The keys of rows that are known to be there.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.rows().map(|(key, _)| key)
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
