//! Which entries of the journal make up the history of one lock.

use std::collections::BTreeSet;

use super::{Event, Subject, What};
use crate::{LockName, Number};

/// How many grants are remembered for what their holders wrote; the oldest are forgotten first.
const GRANTS_MAX: usize = 100_000;

/// Picks the history of one lock out of the journal: what is told of the lock itself, and what its
/// holders wrote, or were refused to write, under their grants.
///
/// Entries are shown to it in the order of the journal: a grant comes before what is done under it.
#[derive(Debug, Clone)]
pub struct OfLock {
    name: LockName,
    /// Invariant: tokens of grants of this lock alone.
    tokens: BTreeSet<Number>,
}

impl OfLock {
    /// The history of the lock of this name.
    pub const fn new(name: LockName) -> Self {
        Self { name, tokens: BTreeSet::new() }
    }

    /// Whether an entry belongs to it.
    pub fn takes(&mut self, event: &Event) -> bool {
        match (&event.subject, &event.what) {
            (Subject::Lock(name), what) if *name == self.name => {
                // A journal that begins in the middle tells of a grant by its end alone.
                if let What::LockGranted { token, .. } | What::LockClosed { token, .. } = what {
                    self.remember(*token);
                }
                true
            }
            (
                Subject::Object(_),
                What::ObjectWritten { token, .. } | What::Refused { token, .. },
            ) => self.tokens.contains(token),
            _ => false,
        }
    }

    fn remember(&mut self, token: Number) {
        self.tokens.insert(token);
        if self.tokens.len() > GRANTS_MAX {
            self.tokens.pop_first();
        }
    }
}

#[cfg(test)]
mod tests;
