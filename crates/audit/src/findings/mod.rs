//! What went wrong in a history: findings, each with its cause, its story and its evidence.
//!
//! [`Analyser`] takes entries as they come and keeps state per live resource, not per entry. A
//! fault is reported only when the history shows it: a lease that changed hands is no fault, a
//! holder that goes on afterwards is. Whatever a well-behaved system does (crashes that a lease
//! recovered included) yields no finding.

mod analyser;
mod attempt;
mod effects;
mod grants;
mod habits;
mod leaving;
mod order;
mod resource;
mod signs;
mod stalls;
mod story;
mod summary;
mod verdict;
mod waits;

pub use analyser::Analyser;
pub use habits::Samples;
pub use summary::{Summary, TtlAdvice, TtlChoice};

use palisade_core::Timestamp;

use crate::Source;

/// What sort of fault a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A resource was held, or waited for, with no living holder.
    Stall,
    /// Two attempts were active at once.
    Overlap,
    /// An effect by a holder whose lease had gone to another.
    LateEffect,
    /// The same effect landed more than once.
    DuplicateEffect,
    /// Work was begun, came to nothing, and nobody took it up again.
    LostWork,
    /// A worker stood still for longer than its lease allowed.
    Pause,
    /// A grant carried a token that was not above an earlier grant's.
    TokenRegression,
    /// Somebody released a lock that was another's.
    ForeignRelease,
    /// Two grants inside one ttl without release or expiry: the lock service forgot.
    LostGrant,
    /// A holder went on after a renewal had failed.
    RenewalIgnored,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Stall,
        Self::Overlap,
        Self::LateEffect,
        Self::DuplicateEffect,
        Self::LostWork,
        Self::Pause,
        Self::TokenRegression,
        Self::ForeignRelease,
        Self::LostGrant,
        Self::RenewalIgnored,
    ];

    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stall => "stall",
            Self::Overlap => "overlap",
            Self::LateEffect => "late_effect",
            Self::DuplicateEffect => "duplicate_effect",
            Self::LostWork => "lost_work",
            Self::Pause => "pause",
            Self::TokenRegression => "token_regression",
            Self::ForeignRelease => "foreign_release",
            Self::LostGrant => "lost_grant",
            Self::RenewalIgnored => "renewal_ignored",
        }
    }
}

/// What brought a fault about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A process stood still past its lease.
    Pause,
    /// The lock service gave away what it had promised.
    LostGrant,
    /// A lock was released by somebody who did not hold it.
    ForeignRelease,
    /// A holder went on after its renewal had failed.
    RenewalIgnored,
    /// A worker ended without giving up what it held.
    Crash,
    /// A worker lives, but the work does not go on.
    Stuck,
    /// The history does not say.
    Unknown,
}

impl Cause {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::LostGrant => "lost_grant",
            Self::ForeignRelease => "foreign_release",
            Self::RenewalIgnored => "renewal_ignored",
            Self::Crash => "crash",
            Self::Stuck => "stuck",
            Self::Unknown => "unknown",
        }
    }
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// The history fits, and other explanations fit as well.
    Possible,
    /// The history fits, and others would be strange.
    Likely,
    /// The entries themselves say so.
    Certain,
}

impl Confidence {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// One sentence of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoryLine {
    /// When it happened.
    pub at: Timestamp,
    /// What happened, as a sentence without its full stop.
    pub text: String,
    /// Whether this is the moment of the mistake.
    pub mistake: bool,
    /// The entry that shows it; none for what is inferred (a lease that ran out).
    pub source: Option<Source>,
}

/// One fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What sort of fault.
    pub kind: Kind,
    /// The resource concerned.
    pub resource: String,
    /// The workers concerned, the one at fault first.
    pub workers: Vec<String>,
    /// What brought it about.
    pub cause: Cause,
    /// How sure that is.
    pub confidence: Confidence,
    /// When it began.
    pub at: Timestamp,
    /// When it was over (or the end of the history).
    pub until: Timestamp,
    /// Compute wasted, in ms. Nothing is counted twice over the findings of one history.
    pub cost_ms: u64,
    /// The fault in one sentence.
    pub headline: String,
    /// What happened, in order.
    pub story: Vec<StoryLine>,
    /// What would have prevented it.
    pub prevented_by: &'static str,
    /// For effects: whether anything landed, or all was refused.
    pub landed: Option<bool>,
}

impl Finding {
    /// The entries that show it, in the order of the story, each once.
    pub fn evidence(&self) -> Vec<Source> {
        let mut sources = Vec::new();
        for source in self.story.iter().filter_map(|line| line.source) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }
}

/// All that a history told.
#[derive(Debug, Clone)]
pub struct Findings {
    /// The faults, by resource in the order in which they began.
    pub findings: Vec<Finding>,
    /// Findings beyond [`Settings::findings_max`], which were counted and not kept.
    pub dropped: u64,
    /// The sums.
    pub summary: Summary,
}

/// What the analyser takes for granted.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How far the order of two entries may be wrong, in ms: a release that is logged this much
    /// after the next grant is taken for an orderly handover.
    pub slack_ms: u64,
    /// How much longer than needed a finished resource is remembered, in ms of the history.
    pub keep_ms: u64,
    /// How long a holder that fell silent is still expected back, in ms of the history.
    pub zombie_ms: u64,
    /// How many findings are kept with their stories; the rest is counted.
    pub findings_max: usize,
    /// Corrections to the files' clocks, in ms, by index of the file; missing ones are 0.
    pub offsets_ms: Vec<i64>,
    /// What the corrections may be wrong by, in ms.
    pub uncertainty_ms: u64,
    /// Files, by index, whose clocks contradict others' and could not be corrected; missing ones
    /// are in order.
    pub doubtful: Vec<bool>,
    /// Whether the history tells of every lease that ran out and went to another, and not of
    /// renewals: then a lease is kept until an entry says otherwise, and silence alone says
    /// nothing.
    pub ends_are_told: bool,
    /// Whether holders are logged when they begin and when they end, and never in between: then
    /// nobody who is silent can be said to have stood still.
    pub silence_says_nothing: bool,
    /// Whether a release does nothing unless it is the holder's own.
    pub releases_are_guarded: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            slack_ms: 250,
            keep_ms: 300_000,
            zombie_ms: 24 * 3_600_000,
            findings_max: 10_000,
            offsets_ms: Vec::new(),
            uncertainty_ms: 0,
            doubtful: Vec::new(),
            ends_are_told: false,
            silence_says_nothing: false,
            releases_are_guarded: false,
        }
    }
}

impl Settings {
    /// Whether the order of entries in these two files is in doubt.
    pub(crate) fn doubts(&self, a: Source, b: Source) -> bool {
        let doubtful =
            |source: Source| self.doubtful.get(source.file as usize).copied().unwrap_or(false);
        a.file != b.file && (doubtful(a) || doubtful(b))
    }

    /// How far two entries may be out of order, in ms, all told.
    pub(crate) const fn tolerance_ms(&self) -> u64 {
        self.slack_ms + self.uncertainty_ms
    }
}

#[cfg(test)]
mod clean_tests;
#[cfg(test)]
mod tests;
