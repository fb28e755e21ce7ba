//! What is counted in a run, besides what the outside sees.

use std::collections::BTreeMap;

use palisade_core::{Digest, JobId, Number, RequestId, lease::Pair};

use crate::linear::{Asked, Operation, Told};

/// One rendering, whole or in part.
#[derive(Debug, Clone)]
pub(crate) struct Rendering {
    /// Of which job.
    pub job: JobId,
    /// What it makes.
    pub content: Digest,
    /// How much of it was done, in ms.
    pub spent_ms: u64,
    /// Whether it came to its end.
    pub whole: bool,
}

/// A grant as its worker received it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// When its claim was sent first, in ms.
    pub asked_at: u64,
    /// When the grant arrived, in ms.
    pub at: u64,
    /// The job.
    pub job: JobId,
    /// The claim.
    pub claim: RequestId,
    /// The pair.
    pub pair: Pair,
}

/// What was counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Events.
    pub steps: u64,
    /// Renderings begun.
    pub renderings: Vec<Rendering>,
    /// Grants received.
    pub received: Vec<Received>,
    /// Grants and reports, each with its job: a grant by its token and 0, a report by its call.
    pub operations: BTreeMap<(u64, u64), (JobId, Operation)>,
    /// Completions acknowledged: the pair that asked, the token that was told, the content told.
    pub completed: Vec<(JobId, Pair, Number, Digest)>,
    /// Jobs whose worker died, since when.
    pub orphaned: BTreeMap<JobId, u64>,
    /// How long such jobs waited for their next worker, in ms.
    pub recoveries_ms: Vec<u64>,
    /// What the store said of records that do not read as what was written.
    pub corrupt: Vec<String>,
    /// Effects refused by the outside.
    pub refused: u64,
}

impl Tally {
    /// A grant was heard.
    pub(crate) fn granted(&mut self, job: JobId, token: Number, (asked_at, now): (u64, u64)) {
        let told = Some((now, Told::Granted(token)));
        let operation = Operation { asked_at, asked: Asked::Claim, told };
        self.operations.entry((token.get(), 0)).or_insert((job, operation));
    }

    /// A report was sent, for the first time.
    pub(crate) fn reported(&mut self, job: JobId, call: u64, asked: Asked, now: u64) {
        let operation = Operation { asked_at: now, asked, told: None };
        self.operations.entry((u64::MAX, call)).or_insert((job, operation));
    }

    /// A report was answered.
    pub(crate) fn told(&mut self, call: u64, told: Told, now: u64) {
        if let Some((_, operation)) = self.operations.get_mut(&(u64::MAX, call)) {
            operation.told.get_or_insert((now, told));
        }
    }

    /// A worker died on a job.
    pub(crate) fn orphan(&mut self, job: JobId, now: u64) {
        self.orphaned.entry(job).or_insert(now);
    }

    /// A job has a worker again.
    pub(crate) fn adopt(&mut self, job: JobId, now: u64) {
        if let Some(since) = self.orphaned.remove(&job) {
            self.recoveries_ms.push(now - since);
        }
    }
}

impl super::world::World {
    /// The outside answered an effect.
    pub(super) fn note_receipt(
        &mut self,
        effect: &super::outside::Effect,
        receipt: super::outside::Receipt,
    ) {
        if receipt == super::outside::Receipt::Stale {
            self.tally.refused += 1;
        }
        let (kind, job) = (effect.kind.as_str(), effect.job);
        if !effect.raise {
            self.trace.tell(self.now, "outside", format_args!("{kind} of {job}: {receipt:?}"));
        }
    }
}
