//! How a lease ends: released, by its holder or by another; expired; or its holder exits.

use super::attempt::{Attempt, End, How, Mark};
use super::order::{Event, NOBODY};
use super::resource::{Context, Foreign, Resource};
use crate::event::says_harmless;

impl Resource {
    pub(crate) fn released(&mut self, event: &Event, context: &mut Context<'_>) {
        let mark = event.mark();
        let own = if event.worker == NOBODY { self.holder } else { self.attempt_of(event.worker) };
        if let Some(index) = own {
            self.sign(index, event, false, context);
            self.attempts[index].end.get_or_insert((End::Released, mark));
            if self.holder == Some(index) {
                self.attempts[index].freed = Some(mark);
                self.holder = None;
                return;
            }
        }
        let Some(victim) = self.holder else { return };
        let guarded = context.settings.releases_are_guarded;
        if guarded || event.detail().is_some_and(says_harmless) {
            return;
        }
        let tolerance_ms = context.settings.tolerance_ms();
        let in_time = mark.at <= self.attempts[victim].first.at.plus_ms(tolerance_ms);
        if own.is_none() && self.unreleased.take_if(|worker| *worker == event.worker).is_some() {
            // A handover that is logged a little late.
            if in_time {
                return;
            }
        }
        let orderly = own.is_some_and(|index| self.gave_up_its_own(index, mark, tolerance_ms));
        if orderly || !self.attempts[victim].alive(mark.at, tolerance_ms) && own.is_some() {
            return;
        }
        self.foreign.push(Foreign { by: own, worker: event.worker, victim, mark });
        self.attempts[victim].freed = Some(mark);
        self.holder = None;
    }

    /// Whether a release by somebody who is no longer the holder touches its own grant alone: a
    /// handover that is logged late, or a grant that the service forgot while it still ran.
    fn gave_up_its_own(&mut self, index: usize, mark: Mark, tolerance_ms: u64) -> bool {
        let attempt = &self.attempts[index];
        let Some(taken) = &attempt.taken else { return false };
        if mark.at <= taken.mark.at.plus_ms(tolerance_ms) {
            self.lost.retain(|lost| lost.first != index);
            return true;
        }
        taken.how == How::LostGrant && attempt.deadline.is_some_and(|deadline| deadline >= mark.at)
    }

    pub(crate) fn expired(&mut self, event: &Event, context: &Context<'_>) {
        let mark = event.mark();
        // A waiter's own wish may expire, and that takes nothing from the holder.
        let wish = self.wishing.iter().position(|worker| *worker == event.worker);
        if let Some(place) = wish.filter(|_| event.worker != NOBODY) {
            self.wishing.swap_remove(place);
            return;
        }
        // Whoever else is named may be the service itself, or who found the lease expired.
        let open = |attempt: &Attempt| attempt.taken.is_none() && !attempt.finished();
        let named = if event.worker == NOBODY { None } else { self.attempt_of(event.worker) };
        let named = named.filter(|index| open(&self.attempts[*index]));
        let Some(index) = named.or(self.holder) else { return };
        let attempt = &mut self.attempts[index];
        attempt.freed = Some(mark);
        let margin_ms = context.settings.tolerance_ms().max(attempt.ttl_ms.unwrap_or(0) / 4);
        attempt.revoked = !attempt.ttl_assumed
            && attempt.deadline.is_some_and(|deadline| deadline > mark.at.plus_ms(margin_ms));
        if context.settings.ends_are_told {
            self.attempts[index].deadline = Some(mark.at);
        }
        if self.holder == Some(index) {
            self.holder = None;
        }
    }

    pub(crate) fn exited(&mut self, event: &Event, context: &mut Context<'_>) {
        let Some(index) = self.attempt_of(event.worker) else { return };
        self.sign(index, event, false, context);
        self.attempts[index].end.get_or_insert((End::Exited, event.mark()));
    }

    /// Whether a worker has anything open here.
    pub(crate) fn has_open(&self, worker: u32) -> bool {
        self.attempts
            .iter()
            .any(|attempt: &Attempt| attempt.worker == worker && attempt.end.is_none())
    }
}
