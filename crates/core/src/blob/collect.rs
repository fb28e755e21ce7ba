//! What the collector may do to a generation that nobody keeps: wait, condemn it, have its place
//! cleared, and forget it when no late upload can come any more.
//!
//! The collector pauses like any process, so it never acts on what it has seen earlier: each step
//! is decided here, in the transaction that records it, and any collector may take the next one.

use serde::{Deserialize, Serialize};

use super::{Blob, BlobState};
use crate::{Digest, Number, Timestamp, job::Job};

/// How far the collector has come with a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Seen unkept. A collector that sees it so for the whole grace condemns it.
    Idle,
    /// Condemned. A collector clears its place, and says so.
    Condemned,
    /// Its place was cleared once. When no late upload can come any more, a collector clears it
    /// again and has it forgotten.
    Cleared,
}

/// A generation in the collector's hands.
///
/// Invariant: the blob is condemned exactly when the stage is not `Idle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The blob.
    pub digest: Digest,
    /// Its generation.
    pub generation: Number,
    /// How far it has come.
    pub stage: Stage,
    /// Seen unkept since; once condemned, condemned since.
    pub since: Timestamp,
}

/// What a look at a generation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Nothing changes.
    Leave,
    /// It is unkept from now on.
    Note(Case),
    /// It is kept again.
    Acquit,
    /// Nobody has kept it for the whole grace: it is condemned, and its place is never named again.
    Condemn(Blob, Case),
}

/// Looks at a generation. `kept` says whether anything keeps it: a reference, or a pin whose time
/// is not over. An upload that was never finished is condemned like a blob that nobody names.
pub fn look(blob: Blob, kept: bool, case: Option<Case>, now: Timestamp, grace_ms: u64) -> Look {
    let Blob { digest, generation, .. } = blob;
    match (blob.state, case) {
        (BlobState::Condemned, _) => Look::Leave,
        (_, None) if kept => Look::Leave,
        (_, Some(_)) if kept => Look::Acquit,
        (_, None) => Look::Note(Case { digest, generation, stage: Stage::Idle, since: now }),
        (_, Some(case)) if now < case.since.plus_ms(grace_ms) => Look::Leave,
        (_, Some(case)) => Look::Condemn(
            Blob { state: BlobState::Condemned, ..blob },
            Case { stage: Stage::Condemned, since: now, ..case },
        ),
    }
}

/// The place of a condemned generation was cleared. None: there is nothing to record.
pub fn cleared(case: Case) -> Option<Case> {
    (case.stage == Stage::Condemned).then_some(Case { stage: Stage::Cleared, ..case })
}

/// Whether a generation may be forgotten, its place having just been cleared again: no upload that
/// began before it was condemned can still arrive after `tombstone_ms`. (One that does all the
/// same leaves bytes that nobody names: it costs room, never correctness.)
pub fn may_forget(case: Case, now: Timestamp, tombstone_ms: u64) -> bool {
    case.stage == Stage::Cleared && now >= case.since.plus_ms(tombstone_ms)
}

/// Whether a job's time is over: it is neither queued nor running, and since it was last moved or
/// wished for, `keep_ms` have passed. Its inputs and outputs are then no longer kept.
pub fn is_past(job: &Job, now: Timestamp, keep_ms: u64) -> bool {
    let wished_at = job.submissions.iter().map(|submission| submission.at).max();
    let last = wished_at.map_or(job.moved_at, |at| at.max(job.moved_at));
    !job.state.is_live() && now >= last.plus_ms(keep_ms)
}

#[cfg(test)]
mod tests;
