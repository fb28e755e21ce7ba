//! Signs of life: work, renewals, effects; and what a silence before them means.

use palisade_core::Timestamp;

use super::attempt::{Attempt, Done, EFFECTS_MAX, End, Failed, How, Mark, Pause};
use super::order::Event;
use super::resource::{Both, Context, LostGrant, Resource};
use crate::EventKind;
use crate::event::says_lost;

/// Silences shorter than this are never called a pause, in ms.
const PAUSE_MIN_MS: u64 = 1_000;

impl Resource {
    pub(crate) fn started(&mut self, event: &Event, context: &mut Context<'_>) {
        // Somebody who has no grant may say "started" before it asks for the lock.
        if let Some(index) = self.attempt_of(event.worker) {
            self.sign(index, event, true, context);
        }
    }

    pub(crate) fn progress(&mut self, event: &Event, context: &mut Context<'_>) {
        let index = self.attempt_of(event.worker).unwrap_or_else(|| self.unseen(event));
        self.sign(index, event, true, context);
    }

    pub(crate) fn renewed(&mut self, event: &Event, context: &mut Context<'_>) {
        context.totals.renewals += 1;
        let index = self.attempt_of(event.worker).unwrap_or_else(|| self.unseen(event));
        self.sign(index, event, false, context);
        let attempt = &mut self.attempts[index];
        if attempt.taken.is_some() {
            self.went_on(index, event.mark(), context);
        }
        let attempt = &mut self.attempts[index];
        // Once another has the lock, a service that does not ask whose it is renews for anybody.
        if attempt.taken.is_none() {
            let before = attempt.renewed_at.or(attempt.granted.map(|mark| mark.at));
            let gap_ms = before.map_or(0, |before| event.at.since_ms(before));
            attempt.renewal_gap_max_ms = attempt.renewal_gap_max_ms.max(gap_ms);
            attempt.renewed_at = Some(event.at);
        }
        attempt.renewals_since_work += 1;
        if let Some(ttl_ms) = event.ttl_ms {
            (attempt.ttl_ms, attempt.ttl_assumed) = (Some(ttl_ms), event.ttl_assumed);
        }
        let told = context.settings.ends_are_told;
        attempt.deadline = attempt.ttl_ms.filter(|_| !told).map(|ttl_ms| event.at.plus_ms(ttl_ms));
        if attempt.taken.is_none() {
            attempt.failed = None;
            attempt.ignored = None;
            attempt.freed = None;
            attempt.revoked = false;
            if attempt.end.is_none() {
                self.holder = Some(index);
            }
        }
    }

    pub(crate) fn renew_failed(&mut self, event: &Event, context: &mut Context<'_>) {
        let Some(index) = self.attempt_of(event.worker) else { return };
        self.sign(index, event, false, context);
        let lost = event.detail().is_some_and(says_lost);
        let attempt = &mut self.attempts[index];
        let failed = attempt.failed.get_or_insert_with(|| Failed {
            first: event.mark(),
            count: 0,
            lost,
            detail: event.detail().map(Into::into),
        });
        failed.count += 1;
        failed.lost |= lost;
    }

    pub(crate) fn completed(&mut self, event: &Event, context: &mut Context<'_>) {
        context.totals.completions += 1;
        // Somebody who was denied may call its errand completed.
        let Some(index) = self.attempt_of(event.worker) else { return };
        if self.attempts[index].ended(End::Released) {
            return;
        }
        self.sign(index, event, true, context);
        self.attempts[index].end = Some((End::Completed, event.mark()));
    }

    pub(crate) fn effect(&mut self, event: &Event, context: &mut Context<'_>) {
        let refused = event.what == EventKind::Refused;
        if refused {
            context.totals.effects_refused += 1;
        } else {
            context.totals.effects_landed += 1;
        }
        let ghost = self.ghost.as_ref().is_some_and(|ghost| ghost.worker == event.worker);
        let below =
            self.highest.zip(event.token).is_some_and(|(highest, token)| token < highest.token);
        let by_token = |fits: &dyn Fn(&Attempt) -> bool| {
            let token = event.token?;
            self.attempts.iter().rposition(|one| one.token == Some(token) && fits(one))
        };
        // A worker that was started again under its name is told from its past self by the token.
        let own = by_token(&|attempt| attempt.worker == event.worker);
        // What is written to may log effects itself: their tokens say whose they are.
        let known = own.or_else(|| self.attempt_of(event.worker)).or_else(|| by_token(&|_| true));
        let index = match known {
            Some(index) => index,
            None if ghost || below => self.unseen(event),
            // Storage, or a deliverer, may log effects without ever holding anything.
            None => return,
        };
        self.sign(index, event, true, context);
        let late = self.is_late(index, event, context.settings.tolerance_ms());
        let attempt = &mut self.attempts[index];
        if attempt.effects.len() < EFFECTS_MAX {
            let (kind, detail) = match event.texts.as_deref() {
                Some(texts) => (texts.kind.clone(), texts.detail.clone()),
                None => (None, None),
            };
            let token = event.token.or(attempt.token);
            attempt.effects.push(Done { mark: event.mark(), kind, detail, refused, token, late });
        }
    }

    /// Whether the holder's lease had gone to another when it acted.
    fn is_late(&self, index: usize, event: &Event, tolerance_ms: u64) -> bool {
        let attempt = &self.attempts[index];
        let token = event.token.or(attempt.token);
        // A holder acts under its own grant: that its number is too low is the service's fault.
        let own_grant = self.holder == Some(index) && token == attempt.token;
        let below = !own_grant
            && self.highest.zip(token).is_some_and(|(highest, token)| {
                token < highest.token && highest.worker != event.worker
            });
        let Some(taken) = &attempt.taken else {
            let refused = event.what == EventKind::Refused;
            return below || (refused && event.detail().is_some_and(says_lost));
        };
        let own_time_left = taken.how == How::LostGrant
            && attempt.deadline.is_some_and(|deadline| deadline >= event.at);
        let over = event.mark().is_after(&taken.mark, tolerance_ms);
        over && !own_time_left && !attempt.ended(End::Completed)
    }

    pub(crate) fn paused(&mut self, event: &Event, context: &mut Context<'_>) {
        let Some(index) = self.attempt_of(event.worker) else { return };
        let length_ms = event.duration_ms.unwrap_or(0);
        let attempt = &mut self.attempts[index];
        let from = Mark {
            at: Timestamp(event.at.0.saturating_sub(length_ms)).max(attempt.first.at),
            source: event.source,
        };
        // The same pause may have been seen as a silence, when the worker was heard of again.
        match attempt.pause.filter(|seen| !seen.reported && seen.to.at > from.at) {
            Some(seen) => attempt.paused_ms = attempt.paused_ms.saturating_sub(seen.length_ms),
            None => context.totals.pauses.add(length_ms),
        }
        attempt.paused_ms += length_ms;
        let too_long = context.settings.ends_are_told
            && attempt.ttl_ms.is_some_and(|ttl_ms| length_ms > ttl_ms);
        let taken_at = attempt.taken.as_ref().map(|taken| taken.mark.at);
        if too_long || crosses(attempt.deadline, taken_at, from.at, event.at) {
            let to = event.mark();
            attempt.pause = Some(Pause { from, to, length_ms, reported: true, of_habit: true });
        }
        attempt.last_sign = event.mark();
    }

    /// A sign of life of an attempt; `work` if it shows that the work itself goes on.
    pub(crate) fn sign(
        &mut self,
        index: usize,
        event: &Event,
        work: bool,
        context: &mut Context<'_>,
    ) {
        let mark = event.mark();
        self.judge_silence(index, mark, context);
        let attempt = &mut self.attempts[index];
        attempt.last_sign = mark;
        if attempt.taken.is_none() {
            self.waiting.count = 0;
            self.waiting.first = None;
            if self.holder == Some(index) {
                self.waiting.late_count = 0;
                self.waiting.late_first = None;
            }
        }
        if !work {
            return;
        }
        self.went_on(index, mark, context);
        let attempt = &mut self.attempts[index];
        let gap_ms = mark.at.since_ms(attempt.last_work.at);
        if attempt.end.is_none() && attempt.taken.is_none() {
            attempt.work_gaps += 1;
            attempt.work_gap_max_ms = attempt.work_gap_max_ms.max(gap_ms);
            context.habits.work_gaps.add(gap_ms);
        }
        attempt.last_work = mark;
        attempt.renewals_since_work = 0;
    }

    /// Decides whether the silence that ends with `mark` was a pause.
    fn judge_silence(&mut self, index: usize, mark: Mark, context: &mut Context<'_>) {
        let attempt = &mut self.attempts[index];
        let from = attempt.last_sign;
        let gap_ms = mark.at.since_ms(from.at);
        if attempt.end.is_some() || context.settings.silence_says_nothing {
            return;
        }
        if context.settings.ends_are_told && attempt.taken.is_none() {
            // It was kept all the while: renewals that nobody tells of have kept it.
            return;
        }
        if gap_ms < PAUSE_MIN_MS {
            attempt.gaps += 1;
            attempt.gap_max_ms = attempt.gap_max_ms.max(gap_ms);
            context.habits.gaps.add(gap_ms);
            return;
        }
        let silent_ms = gap_ms.min(context.tracks.silence_ms(attempt.worker, from.at, mark.at));
        let taken_at = attempt.taken.as_ref().map(|taken| taken.mark.at);
        let usual_ms = if attempt.gaps >= 2 { attempt.gap_max_ms } else { 0 };
        // What the service gave away while the lease still ran, no silence has lost.
        let given_away = attempt.taken.as_ref().is_some_and(|taken| taken.how == How::LostGrant)
            && !(attempt.revoked || attempt.ttl_assumed)
            && attempt.deadline.is_some_and(|deadline| deadline > mark.at);
        let lost_in_it = !given_away && taken_at.is_some_and(|at| from.at <= at && at <= mark.at);
        let fleet = &context.habits.gaps;
        // A holder that is usually this silent has not stood still.
        let fleet_ms = if fleet.count() >= 8 { fleet.rough_quantile_ms(90) } else { 0 };
        // Whoever holds one of our own leases has a keeper that renews it.
        let keeps = context.settings.ends_are_told || attempt.renewed_at.is_some();
        let of_habit = keeps || attempt.gaps >= 2;
        let pause = Pause { from, to: mark, length_ms: silent_ms, reported: false, of_habit };
        if lost_in_it && attempt.stood_still(silent_ms, from.at, (usual_ms, fleet_ms)) {
            attempt.pause = Some(pause);
            attempt.paused_ms += silent_ms;
            context.totals.pauses.add(silent_ms);
        } else if attempt.gaps >= 2
            && silent_ms > (attempt.ttl_ms.unwrap_or(0) / 2).max(usual_ms * 3).max(fleet_ms * 2)
        {
            // Where renewals are not logged, the lease may have been kept all the while.
            let kept = context.totals.renewals == 0 && taken_at.is_none();
            if !kept && crosses(attempt.deadline, taken_at, from.at, mark.at) {
                attempt.pause = Some(pause);
            }
            attempt.paused_ms += silent_ms;
            context.totals.pauses.add(silent_ms);
        } else if silent_ms == gap_ms {
            attempt.gaps += 1;
            attempt.gap_max_ms = attempt.gap_max_ms.max(gap_ms);
            context.habits.gaps.add(gap_ms);
        }
    }

    /// Notes that an attempt is still active, if it should not be any more.
    pub(crate) fn went_on(&mut self, index: usize, mark: Mark, context: &Context<'_>) {
        let tolerance_ms = context.settings.tolerance_ms();
        let attempt = &mut self.attempts[index];
        if attempt.ended(End::Completed) || attempt.ended(End::Restarted) {
            return;
        }
        let lost =
            attempt.taken.as_ref().is_some_and(|taken| mark.is_after(&taken.mark, tolerance_ms));
        if let Some(failed) = &attempt.failed
            && attempt.ignored.is_none()
            && attempt.end.is_none()
        {
            let over =
                attempt.deadline.is_some_and(|deadline| deadline.plus_ms(tolerance_ms) < mark.at);
            if (failed.lost || over || lost) && mark.at > failed.first.at {
                attempt.ignored = Some(mark);
            }
        }
        if lost {
            attempt.after.get_or_insert(mark);
            self.open_overlaps(index, mark, tolerance_ms);
        }
    }

    fn open_overlaps(&mut self, loser: usize, mark: Mark, tolerance_ms: u64) {
        for winner in 0..self.attempts.len() {
            let (a, b) = (&self.attempts[loser], &self.attempts[winner]);
            let known = self.both.iter().any(|both| {
                (both.loser, both.winner) == (loser, winner)
                    || (both.loser, both.winner) == (winner, loser)
            });
            if known || a.worker == b.worker || !b.alive(mark.at, tolerance_ms) {
                continue;
            }
            let woke = a.pause.filter(|pause| pause.to.at > b.first.at).map(|pause| pause.to);
            let from = woke.unwrap_or(if b.first.at > a.first.at { b.first } else { a.first });
            let untimed = a
                .taken
                .as_ref()
                .is_some_and(|taken| taken.how == How::Untimed && taken.by == winner);
            if untimed && a.pause.is_none() && a.failed.is_none() {
                let (first, second, mark) = (loser, winner, b.first);
                self.lost.push(LostGrant { first, second, mark, untimed, revoked: false });
            }
            self.both.push(Both { loser, winner, from });
        }
    }
}

/// Whether a lease ended, or went to another, between two instants.
fn crosses(
    deadline: Option<Timestamp>,
    taken_at: Option<Timestamp>,
    from: Timestamp,
    to: Timestamp,
) -> bool {
    [deadline, taken_at].into_iter().flatten().any(|end| from <= end && end < to)
}
