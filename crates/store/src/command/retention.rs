//! Forgetting what is old: one small step at a time, so that it holds up nobody.

use palisade_core::Timestamp;

/// Forget some of what is old. The caller repeats it, handing on what it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forget {
    /// Entries of the journal before this instant may go, except those of live jobs.
    pub journal_before: Timestamp,
    /// First answers given before this instant may go.
    pub answers_before: Timestamp,
    /// Look at the journal after this position. 0: begin a round.
    pub after: u64,
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten {
    /// Entries of the journal that went.
    pub entries: u64,
    /// First answers that went.
    pub answers: u64,
    /// Where the next step goes on. None: the round is over.
    pub next: Option<u64>,
}
