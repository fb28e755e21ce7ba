//! Completing: the one conditional commit.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Digest, Number, Timestamp,
    job::{CloseReason, Closed, Completion, Job, JobState},
    lease::Pair,
    manifest::Manifest,
    refusal::Refusal,
};

use super::{Applied, Change, closed_by, pair};

/// The blobs of a manifest that are present, each with its generation, read in the transaction.
pub type Present = BTreeMap<Digest, Number>;

/// What a complete is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The committed record.
    pub completion: Completion,
    /// Whether this is the recorded answer to a complete that came with other outputs.
    pub manifest_differs: bool,
}

/// Completes the job, if this attempt is open, its deadline past or not: who was replaced
/// decides, not the clock. The other attempts are closed as outrun.
pub fn complete(
    job: Job,
    shown: &Pair,
    manifest: Manifest,
    present: &Present,
    now: Timestamp,
) -> Result<Applied<Completed>, Refusal> {
    let attempt = pair::named(&job, shown)?;
    match closed_by(attempt) {
        Some(CloseReason::Completed) => {
            let completion = job.completion.clone().expect("a completed attempt's job has one");
            let manifest_differs = !completion.manifest.same_outputs(&manifest);
            Ok(Applied::unchanged(job, Completed { completion, manifest_differs }))
        }
        Some(reason) => Err(pair::stale(&job, reason)),
        None => {
            manifest.validate()?;
            refuse_missing(&manifest, present)?;
            Ok(commit(job, shown, manifest, now))
        }
    }
}

/// A blob that is not present is refused, and the attempt stays open: it may upload and ask again.
fn refuse_missing(manifest: &Manifest, present: &Present) -> Result<(), Refusal> {
    let mut field = None;
    let mut digests = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, output) in manifest.outputs.iter().enumerate() {
        // Two outputs may be the same bytes, which are missing once.
        if !present.contains_key(&output.digest) && seen.insert(output.digest) {
            field.get_or_insert_with(|| format!("manifest.outputs[{index}].digest"));
            digests.push(output.digest);
        }
    }
    match field {
        None => Ok(()),
        Some(field) => Err(Refusal::MissingBlob { field, digests }),
    }
}

fn commit(job: Job, shown: &Pair, manifest: Manifest, now: Timestamp) -> Applied<Completed> {
    let worker = pair::named(&job, shown).expect("found by the caller").worker.clone();
    let mut change = Change::of(job, now);
    let closed = Closed { at: now, reason: CloseReason::Completed, failure: None, requeued: None };
    change.close(shown.token, closed);
    change.close_open(CloseReason::Outrun);
    let completion = Completion { token: shown.token, worker, at: now, manifest };
    change.job.completion = Some(completion.clone());
    change.move_to(JobState::Complete);
    change.done(Completed { completion, manifest_differs: false })
}
