//! The outbox: what a commit owes to the outside, delivered until it is acknowledged.
//!
//! Its rows follow from the journal alone, so a commit cannot be durable without them. Product and
//! lab differ in where the rows are kept, not in when they are sent or what they carry.

use std::collections::BTreeMap;

use palisade_core::{
    Digest, JobId, Number,
    history::What,
    job::{Job, JobState},
};
use palisade_store::query::{Query, View};

use crate::{
    engine::{Engine, job_of},
    random::Dice,
    sim::outside::{Effect, Kind, Stamp},
};

/// How long a delivery waits for its acknowledgement, in ms.
const PATIENCE_MS: u64 = 1_500;
/// How many entries of the journal are read at a time.
const ENTRIES: usize = 1_000;

/// One effect that is owed.
#[derive(Debug, Clone)]
struct Row {
    token: Number,
    content: Digest,
    target: String,
    due_at: u64,
    call: u64,
    delivered: bool,
}

/// What is owed, and what was delivered.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    rows: BTreeMap<(JobId, Number, Kind), Row>,
    read_up_to: u64,
    calls: u64,
}

impl Outbox {
    /// Whether nothing is owed.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.values().all(|row| row.delivered)
    }

    /// Reads what was committed since the last time.
    pub(crate) fn scan(&mut self, engine: &dyn Engine, targets: &BTreeMap<Number, String>) {
        let after = self.read_up_to;
        let View::Events(events) = engine.query(&Query::Events { after, limit: ENTRIES }) else {
            return;
        };
        for (position, event) in events {
            self.read_up_to = position;
            let owes = match event.what {
                What::Moved { state, .. } => state == JobState::Complete,
                What::Submitted { .. } => true,
                _ => false,
            };
            if owes && let Some(job) = event.job().and_then(|id| job_of(engine, id)) {
                self.owe(&job, targets);
            }
        }
    }

    fn owe(&mut self, job: &Job, targets: &BTreeMap<Number, String>) {
        let Some(completion) = &job.completion else { return };
        for submission in &job.submissions {
            // What was withdrawn before it was published stays unpublished.
            if submission.withdrawn_at.is_some() {
                continue;
            }
            let target = targets.get(&submission.number).cloned();
            for kind in Kind::ALL {
                let row = Row {
                    token: completion.token,
                    content: completion.manifest.outputs[0].digest,
                    target: target.clone().unwrap_or_else(|| job.id.to_string()),
                    due_at: 0,
                    call: 0,
                    delivered: false,
                };
                self.rows.entry((job.id, submission.number, kind)).or_insert(row);
            }
        }
    }

    /// What is to be sent now.
    pub(crate) fn due(&mut self, now: u64) -> Vec<(u64, Effect)> {
        let mut due = Vec::new();
        for ((job, submission, kind), row) in &mut self.rows {
            if row.delivered || row.due_at > now {
                continue;
            }
            row.due_at = now + PATIENCE_MS;
            if row.call == 0 {
                self.calls += 1;
                // Calls of the outbox are told from others by being the server's own.
                row.call = self.calls;
            }
            let effect = Effect {
                kind: *kind,
                job: *job,
                target: row.target.clone(),
                content: row.content,
                stamp: Stamp::Projected(*submission, row.token),
                raise: false,
            };
            due.push((row.call, effect));
        }
        due
    }

    /// A delivery was acknowledged, or refused for good: another has the name now.
    pub(crate) fn delivered(&mut self, call: u64) {
        for row in self.rows.values_mut().filter(|row| row.call == call) {
            row.delivered = true;
        }
    }

    /// After a crash: some acknowledgements were not written down, and are delivered again.
    pub(crate) fn forget_some(&mut self, dice: &mut Dice) {
        for row in self.rows.values_mut() {
            if row.delivered && dice.per_mille(300) {
                row.delivered = false;
                row.due_at = 0;
            }
        }
    }
}
