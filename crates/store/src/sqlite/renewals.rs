//! Leases as memory has them, for readers: they see the disk, which does not know of renewals.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use palisade_core::{Number, lease::Lease};

use super::engine::ChangedLeases;

/// Committed leases that may be newer than the disk's.
#[derive(Debug, Default)]
pub(super) struct Renewals(Mutex<BTreeMap<Number, Lease>>);

impl Renewals {
    /// Follows what a commit changed.
    pub(super) fn follow(&self, changed: ChangedLeases) {
        if !changed.all_on_disk && changed.leases.is_empty() {
            return;
        }
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if changed.all_on_disk {
            leases.clear();
        }
        for (token, lease) in changed.leases {
            match lease {
                Some(lease) => leases.insert(token, lease),
                None => leases.remove(&token),
            };
        }
    }

    /// The lease of a token, if it changed since the store started and is still held.
    pub(super) fn get(&self, token: Number) -> Option<Lease> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&token).copied()
    }
}
