//! Time as the database has it, and as this server knows it in between.

use std::sync::{Arc, Mutex, PoisonError};

use palisade_core::{Timestamp, clock::Clock};

/// Whose clock counts deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSource {
    /// The database's: the one that all servers share.
    Database,
    /// The given one, as if it were the database's. For tests, whose time is made by hand.
    Given,
}

/// The database's clock as last heard, carried on by the machine's own.
#[derive(Debug)]
pub(super) struct DatabaseClock {
    clock: Arc<dyn Clock>,
    source: TimeSource,
    heard: Mutex<Heard>,
}

#[derive(Debug)]
struct Heard {
    /// What the database's clock said.
    theirs: Timestamp,
    /// What the machine's said then.
    ours: Timestamp,
    /// The latest instant told.
    told: Timestamp,
}

impl DatabaseClock {
    /// Whether time is the database's, and passes by itself.
    pub(super) fn is_databases(&self) -> bool {
        self.source == TimeSource::Database
    }

    pub(super) fn new(clock: Arc<dyn Clock>, source: TimeSource) -> Self {
        let start = Timestamp::default();
        let heard = Mutex::new(Heard { theirs: start, ours: clock.now(), told: start });
        Self { clock, source, heard }
    }

    /// Wall time where the deadlines are counted: what the database said, unless time is given.
    pub(super) fn wall(&self, database: Timestamp) -> Timestamp {
        match self.source {
            TimeSource::Database => database,
            TimeSource::Given => self.clock.now(),
        }
    }

    /// What the store's clock said just now.
    pub(super) fn hear(&self, theirs: Timestamp) {
        let ours = self.clock.now();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        (heard.theirs, heard.ours) = (theirs, ours);
        heard.told = heard.told.max(theirs);
    }

    /// About what it says now; never less than it said before.
    pub(super) fn now(&self) -> Timestamp {
        let ours = self.clock.now();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let now = heard.theirs.plus_ms(ours.since_ms(heard.ours));
        heard.told = heard.told.max(now);
        heard.told
    }
}

#[cfg(test)]
mod tests;
