//! Leases and locks as memory has them, for readers: they see the disk, which does not know of
//! renewals, nor of those who wait for a lock.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use palisade_core::{LockName, Number, lease::Lease, lock::Lock};

use super::engine::ChangedLeases;

/// Committed leases and locks that may be newer than the disk's.
#[derive(Debug, Default)]
pub(super) struct Renewals(Mutex<Newer>);

#[derive(Debug, Default)]
struct Newer {
    leases: BTreeMap<Number, Lease>,
    locks: BTreeMap<LockName, Lock>,
}

impl Renewals {
    /// Follows what a commit changed.
    pub(super) fn follow(&self, changed: ChangedLeases) {
        let ChangedLeases { all_on_disk, leases, locks } = changed;
        if !all_on_disk && leases.is_empty() && locks.is_empty() {
            return;
        }
        let mut newer = self.lock();
        if all_on_disk {
            *newer = Newer::default();
        }
        for (token, lease) in leases {
            match lease {
                Some(lease) => drop(newer.leases.insert(token, lease)),
                None => drop(newer.leases.remove(&token)),
            }
        }
        for (name, lock) in locks {
            match lock {
                Some(lock) => drop(newer.locks.insert(name, lock)),
                None => drop(newer.locks.remove(&name)),
            }
        }
    }

    /// The lease of a token, if it changed since the store started and is still held.
    pub(super) fn get(&self, token: Number) -> Option<Lease> {
        self.lock().leases.get(&token).copied()
    }

    /// A lock, if it is held.
    pub(super) fn held_lock(&self, name: &LockName) -> Option<Lock> {
        self.lock().locks.get(name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Newer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
