//! Who is told: a customer's hook. It drops what it has had, by the id, and shows of each job what
//! is newest, by the `seq`.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    JobId, Number,
    outbox::{Delivery, EventType, Standing},
};

use crate::{engine::CrashEngine, notice};

/// What it has had, and what it shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Receiver {
    received: BTreeSet<Number>,
    shown: BTreeMap<JobId, (Number, EventType)>,
}

impl Receiver {
    /// Whether it has a row.
    pub(super) fn has(&self, row: Number) -> bool {
        self.received.contains(&row)
    }

    /// Takes a message. An error: it should never have been sent, or not yet.
    pub(super) fn takes(&mut self, number: Number, engine: &CrashEngine) -> Result<(), String> {
        let Some(row) = engine.durable.outbox.get(&number) else {
            return Err(format!("row {number} is delivered, and was never committed"));
        };
        let heard = notice::read(&row.notice.body).ok_or("nobody can read what is told")?;
        if !self.received.insert(number) {
            return Ok(());
        }
        let before = |other: &&Delivery| {
            other.notice.job == heard.job && other.number < number && !self.has(other.number)
        };
        let rows = engine.live.outbox.values().map(|row| &**row);
        if let Some(first) = rows.filter(before).find(|row| row.standing != Standing::Dead) {
            let first = first.number;
            return Err(format!("row {number} is told before row {first}, which was not given up"));
        }
        let shown = self.shown.entry(heard.job).or_insert((heard.seq, heard.event));
        *shown = (*shown).max((heard.seq, heard.event));
        Ok(())
    }

    /// What is wrong with what it shows, once everything has been tried.
    pub(super) fn wrong_in_the_end(&self, engine: &CrashEngine) -> Option<String> {
        for row in engine.live.outbox.values().filter(|row| self.has(row.number)) {
            let shown = self.shown.get(&row.notice.job).map(|(seq, _)| *seq);
            if shown < Some(row.notice.seq) {
                return Some(format!("{} shows what is no longer so", row.notice.job));
            }
        }
        None
    }
}
