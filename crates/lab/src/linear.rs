//! Whether a history of grants and completions of one job is linearizable: whether all that people
//! were told could have come from the operations happening one at a time, each at some instant
//! between its being asked and its being answered.
//!
//! The sequential job is a handful of lines (`Sequential`) and shares nothing with the rules. The
//! search is Wing and Gong's, with a memory of what was tried.

use std::collections::BTreeSet;

use palisade_core::Number;

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// To be granted the job.
    Claim,
    /// To commit under this token.
    Complete(Number),
    /// To give the job back under this token: a failure, a release.
    GiveBack(Number),
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Told {
    /// The job, under this token.
    Granted(Number),
    /// Nothing is to be had.
    Nothing,
    /// It is complete, by this token.
    Completed(Number),
    /// It was given back.
    GivenBack,
    /// The token has been replaced.
    Stale,
}

/// One operation. Instants are any numbers that rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// When it was asked first.
    pub asked_at: u64,
    /// What.
    pub asked: Asked,
    /// When and what was answered. None: nobody knows whether it was done.
    pub told: Option<(u64, Told)>,
}

/// A holder whose grant nobody heard of: no token that is drawn.
const SOMEBODY: Number = Number::MAX;

/// The sequential job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sequential {
    holder: Option<Number>,
    last: Number,
    done: Option<Number>,
    given_back: BTreeSet<Number>,
}

/// How strictly a refusal is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// A holder loses the job to a later grant alone.
    UntilReplaced,
    /// It may be taken away otherwise, too: withdrawn, given up, released for an unheard reply.
    MayBeTaken,
}

impl Sequential {
    /// The job after an operation that was answered so. None: it would not have answered so.
    fn after(&self, asked: Asked, told: Told, holding: Holding) -> Option<Self> {
        let mut after = self.clone();
        match (asked, told) {
            (Asked::Claim, Told::Granted(token)) => {
                if self.done.is_some() || token <= self.last {
                    return None;
                }
                (after.holder, after.last) = (Some(token), token);
            }
            (Asked::Claim, Told::Nothing) => {
                (self.done.is_some() || self.holder.is_some()).then_some(())?;
            }
            (Asked::Complete(token), Told::Completed(by)) if by == token => {
                let now = self.done.is_none() && self.holder == Some(token);
                (now || self.done == Some(token)).then_some(())?;
                after.done = Some(token);
            }
            (Asked::GiveBack(token), Told::GivenBack) => {
                let now = self.done.is_none() && self.holder == Some(token);
                (now || self.given_back.contains(&token)).then_some(())?;
                if now {
                    after.holder = None;
                    after.given_back.insert(token);
                }
            }
            (Asked::Complete(token) | Asked::GiveBack(token), Told::Stale) => {
                let open = self.done.is_none() && self.holder == Some(token);
                if open && holding == Holding::UntilReplaced {
                    return None;
                }
                if open {
                    after.holder = None;
                }
            }
            _ => return None,
        }
        Some(after)
    }

    /// What may have become of the job by an operation that was never answered.
    fn after_unheard(&self, asked: Asked) -> Vec<Self> {
        match asked {
            // Under a token that nobody was told: whoever held it does no more.
            Asked::Claim if self.done.is_none() => {
                vec![Self { holder: Some(SOMEBODY), ..self.clone() }]
            }
            Asked::Claim => Vec::new(),
            Asked::Complete(token) => {
                self.after(asked, Told::Completed(token), Holding::MayBeTaken).into_iter().collect()
            }
            Asked::GiveBack(_) => {
                self.after(asked, Told::GivenBack, Holding::MayBeTaken).into_iter().collect()
            }
        }
    }
}

/// Whether the history is linearizable. At most 64 operations.
pub fn is_linearizable(history: &[Operation], holding: Holding) -> bool {
    assert!(history.len() <= 64, "a history of one job is short");
    let job =
        Sequential { holder: None, last: Number::ZERO, done: None, given_back: BTreeSet::new() };
    Search { history, holding, tried: BTreeSet::new() }.from(0, &job)
}

struct Search<'h> {
    history: &'h [Operation],
    holding: Holding,
    tried: BTreeSet<(u64, Sequential)>,
}

impl Search<'_> {
    /// Whether what is not in `placed` can still be placed after it.
    fn from(&mut self, placed: u64, job: &Sequential) -> bool {
        let open = |index: &usize| placed & (1 << index) == 0;
        let left: Vec<_> = (0..self.history.len()).filter(open).collect();
        if left.iter().all(|index| self.history[*index].told.is_none()) {
            return true;
        }
        if !self.tried.insert((placed, job.clone())) {
            return false;
        }
        let told_at = |index: &usize| self.history[*index].told.map(|(at, _)| at);
        // Nothing may come before what had been answered when it was asked.
        let first_end = left.iter().filter_map(told_at).min().unwrap_or(u64::MAX);
        let may_be_next = |index: &usize| self.history[*index].asked_at <= first_end;
        for index in left.into_iter().filter(may_be_next) {
            let Operation { asked, told, .. } = self.history[index];
            let outcomes = match told {
                Some((_, told)) => job.after(asked, told, self.holding).into_iter().collect(),
                None => job.after_unheard(asked),
            };
            let placed = placed | 1 << index;
            if outcomes.iter().any(|job| self.from(placed, job)) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
