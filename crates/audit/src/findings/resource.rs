//! One resource: who holds it, who held it, and what looked wrong on the way.

use palisade_core::Timestamp;

use super::attempt::{Attempt, End, Mark, Waiting};
use super::habits::{Habits, Tracks};
use super::order::{Event, NOBODY};
use super::summary::Totals;
use super::waits::Unanswered;
use super::{Finding, Settings};
use crate::EventKind;
use crate::names::Names;

/// Two attempts that were active at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Both {
    /// The attempt that had lost the resource.
    pub(crate) loser: usize,
    /// The attempt that had it.
    pub(crate) winner: usize,
    pub(crate) from: Mark,
}

/// A grant inside another's ttl.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LostGrant {
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) mark: Mark,
    /// No ttl is known; that the first was visibly at work is all there is.
    pub(crate) untimed: bool,
    /// The service said that the first's time was over, which it was not.
    pub(crate) revoked: bool,
}

/// A release by somebody who did not hold the lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Foreign {
    /// The releaser's own attempt, if it had one.
    pub(crate) by: Option<usize>,
    pub(crate) worker: u32,
    pub(crate) victim: usize,
    pub(crate) mark: Mark,
}

impl Foreign {
    /// Whether it took the lock away: a victim that could still renew afterwards had kept it.
    pub(crate) fn freed(&self, victim: &Attempt) -> bool {
        victim.renewed_at.is_none_or(|renewed_at| renewed_at <= self.mark.at)
    }
}

/// A grant whose token was not above an earlier one's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Regression {
    pub(crate) mark: Mark,
    pub(crate) worker: u32,
    pub(crate) token: u64,
    pub(crate) above: Highest,
}

/// The highest token granted so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Highest {
    pub(crate) token: u64,
    pub(crate) worker: u32,
    pub(crate) mark: Option<Mark>,
}

/// What a resource's events are judged by, and where what they tell is collected.
pub(crate) struct Context<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) tracks: &'a Tracks,
    pub(crate) habits: &'a mut Habits,
    pub(crate) totals: &'a mut Totals,
    pub(crate) workers: &'a Names,
    pub(crate) name: &'a str,
    pub(crate) findings: &'a mut Vec<Finding>,
}

/// One resource.
#[derive(Debug, Default)]
pub(crate) struct Resource {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) holder: Option<usize>,
    pub(crate) waiting: Waiting,
    pub(crate) unanswered: Option<Unanswered>,
    /// Who asked for it and has no answer yet, the first few.
    pub(crate) wishing: Vec<u32>,
    pub(crate) highest: Option<Highest>,
    pub(crate) work: u32,
    pub(crate) both: Vec<Both>,
    pub(crate) lost: Vec<LostGrant>,
    pub(crate) foreign: Vec<Foreign>,
    pub(crate) regressions: Vec<Regression>,
    /// The last finished attempt, should its worker act once more.
    pub(crate) ghost: Option<Box<Attempt>>,
    /// Who completed the work that was told of last, and has not been heard to release since.
    pub(crate) unreleased: Option<u32>,
    pub(crate) last_event: Timestamp,
    /// Events of this resource that wait for their turn.
    pub(crate) pending: u32,
    pub(crate) queued: bool,
}

/// How many unanswered wishes are remembered.
const WISHES_MAX: usize = 16;
/// More attempts than this at once are concluded early, so that one resource stays small.
const ATTEMPTS_MAX: usize = 64;

impl Resource {
    /// Takes the next event.
    pub(crate) fn apply(&mut self, event: &Event, context: &mut Context<'_>) {
        self.last_event = self.last_event.max(event.at);
        match event.what {
            EventKind::Requested => self.requested(event),
            EventKind::Denied => self.denied(event, context),
            EventKind::Acquired => self.acquired(event, context),
            EventKind::Renewed => self.renewed(event, context),
            EventKind::RenewFailed => self.renew_failed(event, context),
            EventKind::Released => self.released(event, context),
            EventKind::Expired => self.expired(event, context),
            EventKind::Started => self.started(event, context),
            EventKind::Progress => self.progress(event, context),
            EventKind::Effect | EventKind::Refused => self.effect(event, context),
            EventKind::Completed => self.completed(event, context),
            EventKind::Exited => self.exited(event, context),
            EventKind::Paused => self.paused(event, context),
        }
        if self.attempts.len() > ATTEMPTS_MAX {
            self.conclude(event.at, false, context);
        }
    }

    /// The latest attempt of a worker, the holder first.
    pub(crate) fn attempt_of(&self, worker: u32) -> Option<usize> {
        if let Some(holder) = self.holder
            && self.attempts[holder].worker == worker
        {
            return Some(holder);
        }
        self.attempts.iter().rposition(|attempt| attempt.worker == worker)
    }

    /// Whether nothing is going on, so that the resource may be forgotten after a while.
    pub(crate) fn is_quiet(&self) -> bool {
        let held = self.holder.is_some_and(|holder| self.attempts[holder].end.is_none());
        !held && self.waiting.late_count == 0 && self.attempts.iter().all(Attempt::finished)
    }

    /// The longest ttl in play, in ms.
    pub(crate) fn ttl_ms(&self) -> u64 {
        self.attempts.iter().filter_map(|attempt| attempt.ttl_ms).max().unwrap_or(0)
    }

    /// Whether anything looked wrong; if not, concluding is only a matter of sums.
    pub(crate) fn is_suspect(&self) -> bool {
        !(self.both.is_empty()
            && self.lost.is_empty()
            && self.foreign.is_empty()
            && self.regressions.is_empty())
            || self.waiting.late_count > 0
            || self.attempts.iter().any(|attempt| {
                attempt.pause.is_some()
                    || attempt.ignored.is_some()
                    || !attempt.finished()
                    || attempt.effects.iter().any(|effect| effect.late || effect.refused)
            })
    }

    /// Forgets all that has been told.
    pub(crate) fn clear(&mut self) {
        let last = self.attempts.pop();
        let completed = last.as_ref().filter(|attempt| attempt.ended(End::Completed));
        self.unreleased = completed.map(|attempt| attempt.worker);
        self.ghost = last.filter(|attempt| attempt.ended(End::Released)).map(Box::new);
        self.attempts.clear();
        self.holder = None;
        self.both.clear();
        self.lost.clear();
        self.foreign.clear();
        self.regressions.clear();
        self.waiting = Waiting::default();
        self.work = 0;
    }

    fn requested(&mut self, event: &Event) {
        let (first, worker) = (event.mark(), event.worker);
        self.unanswered.get_or_insert(Unanswered { first, worker, count: 0 }).count += 1;
        let holds = self.holder.is_some_and(|holder| self.attempts[holder].worker == worker);
        if !holds && self.wishing.len() < WISHES_MAX && !self.wishing.contains(&worker) {
            self.wishing.push(worker);
        }
    }

    fn denied(&mut self, event: &Event, context: &Context<'_>) {
        self.unanswered = None;
        self.wishing.retain(|worker| *worker != event.worker);
        let mark = event.mark();
        let waiting = &mut self.waiting;
        waiting.count += 1;
        waiting.first.get_or_insert(mark);
        waiting.last = Some(mark);
        let gone = match self.holder.map(|holder| &self.attempts[holder]) {
            // Nobody is known to hold it; before the first grant, somebody unseen may.
            None => !self.attempts.is_empty() || self.ghost.is_some(),
            Some(holder) if holder.worker == event.worker => false,
            Some(holder) => {
                holder.end.is_some()
                    || holder.latest_deadline().is_some_and(|deadline| {
                        let grace_ms = (holder.ttl_ms.unwrap_or(0) / 2).max(2_000);
                        event.at > deadline.plus_ms(grace_ms + context.settings.tolerance_ms())
                    })
            }
        };
        if gone {
            waiting.late_count += 1;
            waiting.late_first.get_or_insert(mark);
        }
    }
}

/// A name for sentences; a history that does not say who gets a word for it.
pub(crate) fn who(worker: u32, workers: &Names) -> String {
    if worker == NOBODY { "somebody".to_owned() } else { workers.text(worker).to_owned() }
}
