//! All locks that are held, in memory, with their renewals and those who wait for them.
//!
//! A waiter is a connection, and a restart breaks it: it asks again and takes a place again.
//! Changes of a transaction can be taken back until it commits.

use std::collections::BTreeMap;

use palisade_core::{LockName, lease::Start, lock::Lock};

/// The book of locks.
///
/// Invariant: between transactions, exactly the locks that are held.
#[derive(Debug, Clone, Default)]
pub struct LockBook {
    locks: BTreeMap<LockName, Lock>,
    /// What changed since the last commit, oldest first, each with what stood there before.
    undo: Vec<(LockName, Option<Lock>)>,
}

impl LockBook {
    /// A lock, if it is held.
    pub fn get(&self, name: &LockName) -> Option<&Lock> {
        self.locks.get(name)
    }

    /// Follows a lock's record.
    pub fn follow(&mut self, lock: &Lock) {
        let before = if lock.holding.is_some() {
            self.locks.insert(lock.name.clone(), lock.clone())
        } else {
            self.locks.remove(&lock.name)
        };
        self.undo.push((lock.name.clone(), before));
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Lock> {
        self.locks.values()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// Those that somebody waits for.
    pub fn waited_for(&self) -> Vec<LockName> {
        let waited = self.all().filter(|lock| !lock.waiters.is_empty());
        waited.map(|lock| lock.name.clone()).collect()
    }

    /// Every lock as it is after a start of the store. Waiters that are still there (after a gap)
    /// are not held responsible for the time in which they could not be heard.
    pub fn after_start(&self, start: Start) -> Vec<Lock> {
        let gap_ms = start.now.at.since_ms(start.recorded_at);
        let after = |lock: &Lock| {
            let mut lock = lock.clone();
            if let Some(holding) = &mut lock.holding {
                holding.lease = holding.lease.after_start(start);
            }
            for waiter in &mut lock.waiters {
                waiter.alive_until = waiter.alive_until.plus_ms(gap_ms);
            }
            lock
        };
        self.all().map(after).collect()
    }

    /// A place to roll back to.
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Takes back what changed since the mark.
    pub fn roll_back_to(&mut self, mark: usize) {
        while self.undo.len() > mark {
            let (name, before) = self.undo.pop().expect("longer than the mark");
            match before {
                Some(lock) => drop(self.locks.insert(name, lock)),
                None => drop(self.locks.remove(&name)),
            }
        }
    }

    /// Keeps what changed, and tells of each lock that did: as it is now, or none if it is free.
    pub fn commit(&mut self, mut changed: impl FnMut(LockName, Option<Lock>)) {
        for (name, _) in self.undo.drain(..) {
            let now = self.locks.get(&name).cloned();
            changed(name, now);
        }
    }
}

/// Whether the disk must follow a change of a lock.
///
/// The first renewal in a life of the store is recorded, because the next start decides by it who
/// was alive; the others live in memory.
pub fn must_be_durable(before: Option<&Lock>, lock: &Lock) -> bool {
    let kept = |lock: &Lock| {
        let held = lock.holding.as_ref().map(|held| (held.token, held.lease.life));
        (lock.fence, held)
    };
    before.map(kept) != Some(kept(lock))
}
