//! The one row about the store itself.

use palisade_core::{Number, Timestamp, job::JobState};
use rusqlite::{Connection, params};

use crate::{
    fault::Fault,
    sqlite::values::{Columns, fault, instant, int, number},
};

/// What the store knows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) struct Meta {
    /// The last number drawn.
    pub(in crate::sqlite) counter: Number,
    /// The clock as recorded last.
    pub(in crate::sqlite) clock: Timestamp,
    /// How many times the store has started.
    pub(in crate::sqlite) life: u64,
    /// How many jobs stand in each state, in the order of [`JobState::ALL`].
    pub(in crate::sqlite) counts: [u64; 5],
    /// The position that the journal's next entry gets.
    pub(in crate::sqlite) journal_next: u64,
    /// Up to this position entries of the journal may be missing.
    pub(in crate::sqlite) journal_pruned: u64,
}

impl Meta {
    pub(in crate::sqlite) fn read(connection: &Connection) -> Result<Self, Fault> {
        let sql = "SELECT counter, clock_ms, life, queued, running, complete, failed, cancelled, \
                   journal_next, journal_pruned FROM meta";
        let mut statement = connection.prepare_cached(sql).map_err(fault)?;
        let mut rows = statement.query([]).map_err(fault)?;
        let row = rows.next().map_err(fault)?.ok_or_else(|| Fault::Corrupt {
            record: "meta".to_owned(),
            what: "its row is missing".to_owned(),
        })?;
        let columns = Columns::new("meta", row);
        let mut counts = [0; 5];
        for (index, count) in counts.iter_mut().enumerate() {
            *count = columns.unsigned(3 + index)?;
        }
        Ok(Self {
            counter: columns.number(0)?,
            clock: columns.instant(1)?,
            life: columns.unsigned(2)?,
            counts,
            journal_next: columns.unsigned(8)?,
            journal_pruned: columns.unsigned(9)?,
        })
    }

    pub(in crate::sqlite) fn write(&self, connection: &Connection) -> Result<(), Fault> {
        let sql = "UPDATE meta SET counter = ?1, clock_ms = ?2, life = ?3, queued = ?4, \
                   running = ?5, complete = ?6, failed = ?7, cancelled = ?8, \
                   journal_next = ?9, journal_pruned = ?10";
        let [queued, running, complete, failed, cancelled] = self.counts.map(int);
        let values = params![
            number(self.counter),
            instant(self.clock),
            int(self.life),
            queued,
            running,
            complete,
            failed,
            cancelled,
            int(self.journal_next),
            int(self.journal_pruned)
        ];
        let mut statement = connection.prepare_cached(sql).map_err(fault)?;
        statement.execute(values).map(drop).map_err(fault)
    }

    /// Moves one job from a state to another. `from` is none for a new job.
    pub(in crate::sqlite) fn count_move(&mut self, from: Option<JobState>, to: JobState) {
        if let Some(from) = from {
            self.counts[place(from)] -= 1;
        }
        self.counts[place(to)] += 1;
    }
}

fn place(state: JobState) -> usize {
    match state {
        JobState::Queued => 0,
        JobState::Running => 1,
        JobState::Complete => 2,
        JobState::Failed => 3,
        JobState::Cancelled => 4,
    }
}
