//! Grants: who had the resource before, and whether it was free.

use super::attempt::{Attempt, End, How, Mark, Taken, Waiting};
use super::order::Event;
use super::resource::{Context, Highest, LostGrant, Regression, Resource};

impl Resource {
    pub(crate) fn acquired(&mut self, event: &Event, context: &mut Context<'_>) {
        self.unanswered = None;
        self.wishing.retain(|worker| *worker != event.worker);
        if self.is_reentrant(event) {
            self.renewed(event, context);
            return;
        }
        if !self.attempts.is_empty() && self.attempts.iter().all(Attempt::finished) {
            self.conclude(event.at, false, context);
        }
        self.take_over(event, context);
        self.check_token(event);
        self.work = self.next_work();
        // Most resources see one attempt at a time; a vector's usual first step is room for four.
        self.attempts.reserve_exact(1);
        let mut attempt = Attempt::new(event, true, self.work);
        if context.settings.ends_are_told {
            attempt.deadline = None;
        }
        self.attempts.push(attempt);
        self.holder = Some(self.attempts.len() - 1);
        self.waiting = Waiting::default();
    }

    /// The holder asked again while it holds: a repeated request, or a lock that may be nested.
    fn is_reentrant(&self, event: &Event) -> bool {
        let Some(holder) = self.holder.map(|holder| &self.attempts[holder]) else {
            return false;
        };
        let same_token = event.token.is_none() || event.token == holder.token;
        holder.worker == event.worker
            && holder.end.is_none()
            && same_token
            && (holder.deadline.is_some_and(|deadline| deadline >= event.at)
                || (event.token.is_some() && event.token == holder.token))
    }

    fn check_token(&mut self, event: &Event) {
        let Some(token) = event.token else { return };
        if let Some(highest) = self.highest {
            let replay = token == highest.token && highest.worker == event.worker;
            if token <= highest.token && !replay {
                self.regressions.push(Regression {
                    mark: event.mark(),
                    worker: event.worker,
                    token,
                    above: highest,
                });
            }
        }
        if self.highest.is_none_or(|highest| highest.token < token) {
            self.highest = Some(Highest { token, worker: event.worker, mark: Some(event.mark()) });
        }
    }

    /// Notes on every attempt before that the resource is now another's.
    fn take_over(&mut self, event: &Event, context: &Context<'_>) {
        let by = self.attempts.len();
        let mark = event.mark();
        let waiting = self.waiting;
        let tolerance_ms = context.settings.tolerance_ms();
        for index in 0..self.attempts.len() {
            if self.attempts[index].taken.is_some() {
                continue;
            }
            let same_worker = self.attempts[index].worker == event.worker;
            let how = self.how_lost(index, mark, tolerance_ms);
            let attempt = &mut self.attempts[index];
            if same_worker && attempt.end.is_none() {
                attempt.end = Some((End::Restarted, attempt.last_sign));
            }
            let deadline = attempt.deadline;
            attempt.taken = Some(Taken { by, mark, how, deadline, waiting });
            if how == How::LostGrant && !same_worker {
                let revoked = attempt.revoked;
                let first = index;
                self.lost.push(LostGrant { first, second: by, mark, untimed: false, revoked });
            }
        }
    }

    fn how_lost(&self, index: usize, mark: Mark, tolerance_ms: u64) -> How {
        let attempt = &self.attempts[index];
        if self.foreign.iter().any(|foreign| foreign.victim == index && foreign.freed(attempt)) {
            return How::ForeignRelease;
        }
        if attempt.end.is_some() {
            return How::Ended;
        }
        if attempt.freed.is_some() && !attempt.revoked {
            return How::Lapsed;
        }
        match attempt.deadline {
            None => How::Untimed,
            Some(deadline) if mark.at.plus_ms(tolerance_ms) >= deadline => How::Lapsed,
            Some(_) => How::LostGrant,
        }
    }

    /// The number of the piece of work that a new grant is for: the same as before unless that
    /// work was brought to its end and nobody is still at it.
    fn next_work(&self) -> u32 {
        let same = |attempt: &&Attempt| attempt.work == self.work;
        let done = self.attempts.iter().filter(same).any(|attempt| {
            attempt.ended(End::Completed)
                || (attempt.ended(End::Released) && attempt.landed().next().is_some())
        });
        let busy = self.attempts.iter().filter(same).any(|attempt| {
            let silent_since_lost = attempt.after.is_none()
                && attempt.taken.as_ref().is_some_and(|taken| taken.by < self.attempts.len());
            attempt.end.is_none() && !silent_since_lost
        });
        if done && !busy { self.work + 1 } else { self.work }
    }

    /// An attempt for a worker whose grant the history does not show.
    pub(crate) fn unseen(&mut self, event: &Event) -> usize {
        let index = self.attempts.len();
        let ghost = self.ghost.take_if(|ghost| ghost.worker == event.worker);
        let mut attempt = match ghost {
            Some(ghost) => *ghost,
            None => Attempt::new(event, false, self.work),
        };
        if let Some(holder) = self.holder {
            let mark = self.attempts[holder].first;
            let how = if attempt.end.is_some() { How::Ended } else { How::Unseen };
            let deadline = attempt.deadline;
            let waiting = Waiting::default();
            attempt.taken = Some(Taken { by: holder, mark, how, deadline, waiting });
        } else {
            self.holder = Some(index);
        }
        self.attempts.push(attempt);
        index
    }
}
