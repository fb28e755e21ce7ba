//! Resources with no living holder: recovered in time, late, or never; and work that was lost.

use palisade_core::Timestamp;

use super::attempt::{Attempt, End, How, Taken};
use super::resource::{Context, Resource};
use super::story::Tag;
use super::verdict::Draft;
use super::{Cause, Confidence, Kind};
use crate::words::{count, span};

/// A silence shorter than this is no stall, in ms.
const STALL_MIN_MS: u64 = 60_000;
/// Where nothing is known of how often workers speak, only a silence this long counts, in ms.
const STALL_BLIND_MS: u64 = 600_000;
/// Work that is free is taken up within this time, where anybody means to, in ms.
const UNTAKEN_MS: u64 = 120_000;
/// A lock without expiry that another got within this time was recovered, in ms.
const RECOVERED_MS: u64 = 300_000;
/// A silence shorter than this hides nothing behind a long lease, in ms.
const HIDDEN_MIN_MS: u64 = 1_800_000;
/// Waiting for less than this, after a lease was over, is no stall, in ms.
const WAITED_MIN_MS: u64 = 5_000;
/// Renewals without work that make a holder look stuck.
const STUCK_RENEWALS: u32 = 3;

impl Resource {
    pub(crate) fn find_stalls(
        &self,
        now: Timestamp,
        over: bool,
        context: &mut Context<'_>,
        drafts: &mut Vec<Draft>,
    ) {
        for (index, attempt) in self.attempts.iter().enumerate() {
            if attempt.after.is_some() || attempt.finished() {
                continue;
            }
            let stuck = self.find_stuck(index, now, over, context);
            match (&attempt.taken, stuck) {
                (_, Some(draft)) => drafts.push(draft),
                (Some(taken), None) => {
                    drafts.extend(self.judge_recovery(index, taken, context));
                }
                (None, None) if over => {
                    drafts.extend(self.judge_silence_at_end(index, now, context));
                }
                (None, None) => {}
            }
        }
        if over {
            drafts.extend(self.find_vain_waiting(now, context));
        }
    }

    /// A holder that fell silent, and whose resource another got: in good time, or late.
    fn judge_recovery(
        &self,
        index: usize,
        taken: &Taken,
        context: &mut Context<'_>,
    ) -> Option<Draft> {
        let attempt = &self.attempts[index];
        let dead_ms = taken.mark.at.since_ms(attempt.last_sign.at);
        if taken.how != How::LostGrant || attempt.revoked {
            context.totals.recoveries.add(dead_ms);
        }
        let limit_ms = silence_limit_ms(attempt, context);
        // Who asks first long after the lease was over, and is granted it then, was not kept waiting.
        let waited_ms = taken.waiting.late_first.map_or(0, |mark| taken.mark.at.since_ms(mark.at));
        let late = waited_ms >= (attempt.ttl_ms.unwrap_or(0) / 2).max(WAITED_MIN_MS)
            && attempt.latest_deadline().is_some_and(|deadline| {
                taken.mark.at > deadline.plus_ms(attempt.ttl_ms.unwrap_or(0).max(10_000))
            });
        let untimed = taken.deadline.is_none()
            && taken.waiting.count > 0
            && dead_ms > limit_ms.max(RECOVERED_MS);
        if !late && !untimed {
            return None;
        }
        let mut draft = self.stall(index, taken.mark.at, context);
        draft.attempts.push(taken.by);
        Some(draft)
    }

    /// A holder that nobody followed, at the end of the history.
    fn judge_silence_at_end(
        &self,
        index: usize,
        now: Timestamp,
        context: &Context<'_>,
    ) -> Option<Draft> {
        let attempt = &self.attempts[index];
        let silent_ms = now.since_ms(attempt.last_sign.at);
        if context.settings.ends_are_told && attempt.freed.is_none() {
            return None;
        }
        if self.hides_a_crash(index, silent_ms, context) {
            let stall = self.stall(index, now, context);
            return Some(Draft { confidence: Confidence::Possible, ..stall });
        }
        let limit_ms = silence_limit_ms(attempt, context);
        // Of a grant that the history does not show, it cannot be said that it was kept.
        if silent_ms <= limit_ms || attempt.granted.is_none() {
            return None;
        }
        let is_holder = self.holder == Some(index);
        let free = attempt.freed.is_some()
            || attempt.latest_deadline().is_some_and(|deadline| deadline < now);
        let refused_late = is_holder && self.waiting.late_count > 0;
        let long_lease =
            is_holder && self.waiting.count > 0 && silent_ms > limit_ms.max(RECOVERED_MS);
        if is_holder && (attempt.deadline.is_none() || refused_late || (!free && long_lease)) {
            return Some(self.stall(index, now, context));
        }
        let free_since = attempt.freed.map(|mark| mark.at).or(attempt.latest_deadline())?;
        let untaken = now.since_ms(free_since) > limit_ms.max(UNTAKEN_MS);
        (free && untaken && self.was_lost(index, context))
            .then(|| self.lost_work(index, now, context))
    }

    /// Whether a lease is so long that a crash is hidden behind it: others are denied again and
    /// again, and the holder is silent for far longer than it, or anybody's work, ever was.
    fn hides_a_crash(&self, index: usize, silent_ms: u64, context: &Context<'_>) -> bool {
        let attempt = &self.attempts[index];
        let patience_ms = (attempt.gap_max_ms * 100)
            .max(attempt.renewal_gap_max_ms * 3)
            .max(context.totals.compute.max_ms() * 2)
            .max(HIDDEN_MIN_MS);
        self.holder == Some(index)
            && attempt.granted.is_some()
            && attempt.gaps >= 3
            && self.waiting.count >= 3
            && silent_ms > patience_ms
    }

    /// Whether an attempt's work came to nothing: it had begun, and neither it nor another
    /// attempt at the same work brought anything about.
    fn was_lost(&self, index: usize, context: &Context<'_>) -> bool {
        let attempt = &self.attempts[index];
        let begun = attempt.last_work.at > attempt.first.at;
        let come_of_it = self.attempts.iter().any(|other| {
            other.work == attempt.work
                && (other.ended(End::Completed) || other.landed().next().is_some())
        });
        begun && !come_of_it && context.totals.completions > 0
    }

    fn lost_work(&self, index: usize, now: Timestamp, context: &Context<'_>) -> Draft {
        let attempt = &self.attempts[index];
        let who = self.named(index, context);
        Draft {
            kind: Kind::LostWork,
            cause: Cause::Crash,
            confidence: if attempt.ended(End::Exited) {
                Confidence::Certain
            } else {
                Confidence::Likely
            },
            attempts: vec![index],
            others: Vec::new(),
            at: attempt.last_sign.at,
            until: now,
            cost_ms: attempt.compute_ms(),
            headline: format!(
                "{who} began the work and was not heard of again; in the {} that followed, \
                 nobody took it up",
                span(now.since_ms(attempt.last_sign.at))
            ),
            mistake: (Tag::LastSign, index, attempt.last_sign.at),
            landed: None,
        }
    }

    fn stall(&self, index: usize, until: Timestamp, context: &Context<'_>) -> Draft {
        let attempt = &self.attempts[index];
        let who = self.named(index, context);
        let since = attempt.last_sign.at;
        let waiting = attempt.taken.as_ref().map_or(self.waiting, |taken| taken.waiting);
        let lock = match attempt.ttl_ms {
            None => "a lock without expiry".to_owned(),
            Some(ttl_ms) => format!("a lease of {}", span(ttl_ms)),
        };
        let refused = match waiting.count {
            0 => String::new(),
            denials => {
                format!("; others were denied {}", count(u64::from(denials), "time", "times"))
            }
        };
        let (cause, confidence) = cause_of_silence(attempt, until, context);
        Draft {
            kind: Kind::Stall,
            cause,
            confidence,
            attempts: vec![index],
            others: Vec::new(),
            at: since,
            until,
            cost_ms: attempt.compute_ms(),
            headline: format!(
                "{who} held it by {lock} for {} without a sign of life{refused}",
                span(until.since_ms(since))
            ),
            mistake: (Tag::LastSign, index, since),
            landed: None,
        }
    }

    /// A holder whose renewals go on while its work does not.
    fn find_stuck(
        &self,
        index: usize,
        now: Timestamp,
        over: bool,
        context: &Context<'_>,
    ) -> Option<Draft> {
        let attempt = &self.attempts[index];
        if context.settings.ends_are_told {
            return None;
        }
        if attempt.renewals_since_work < STUCK_RENEWALS || !(over || attempt.taken.is_some()) {
            return None;
        }
        let until = attempt.taken.as_ref().map_or(now, |taken| taken.mark.at);
        let idle_ms = attempt.last_sign.at.since_ms(attempt.last_work.at);
        let habits = &context.habits.work_gaps;
        let own_ms = if attempt.work_gaps >= 3 { attempt.work_gap_max_ms } else { 0 };
        let fleet_ms = if habits.count() >= 10 { habits.rough_quantile_ms(99) } else { 0 };
        if own_ms.max(fleet_ms) == 0 {
            return None;
        }
        let limit_ms =
            (own_ms.max(fleet_ms) * 5).max(attempt.ttl_ms.unwrap_or(0) * 3).max(STALL_MIN_MS);
        if idle_ms <= limit_ms {
            return None;
        }
        let who = self.named(index, context);
        Some(Draft {
            kind: Kind::Stall,
            cause: Cause::Stuck,
            confidence: Confidence::Likely,
            attempts: vec![index],
            others: Vec::new(),
            at: attempt.last_work.at,
            until,
            cost_ms: attempt.over().at.since_ms(attempt.first.at),
            headline: format!(
                "{who} renewed its lease {} while its work stood still for {}",
                count(u64::from(attempt.renewals_since_work), "time", "times"),
                span(until.since_ms(attempt.last_work.at))
            ),
            mistake: (Tag::LastWork, index, attempt.last_work.at),
            landed: None,
        })
    }

    /// Denials that go on though nobody holds the resource, or its holder is through.
    fn find_vain_waiting(&self, now: Timestamp, context: &Context<'_>) -> Option<Draft> {
        let index = self.holder.or(self.attempts.len().checked_sub(1))?;
        let attempt = &self.attempts[index];
        let (first, last) = (self.waiting.late_first?, self.waiting.last?);
        let long = last.at.since_ms(first.at) >= STALL_MIN_MS && self.waiting.late_count >= 3;
        if !attempt.finished() || !long {
            return None;
        }
        let who = self.named(index, context);
        Some(Draft {
            kind: Kind::Stall,
            cause: Cause::Unknown,
            confidence: Confidence::Likely,
            attempts: vec![index],
            others: Vec::new(),
            at: attempt.over().at,
            until: now,
            cost_ms: 0,
            headline: format!(
                "{who} was through, but others were denied {} afterwards: the lock was never \
                 given up",
                count(u64::from(self.waiting.late_count), "time", "times")
            ),
            mistake: (Tag::Ended, index, attempt.over().at),
            landed: None,
        })
    }
}

/// How long a holder may be silent before it is given up for dead, in ms.
fn silence_limit_ms(attempt: &Attempt, context: &Context<'_>) -> u64 {
    let ttl_ms = attempt.ttl_ms.unwrap_or(0);
    if attempt.ended(End::Exited) {
        // The dead do not come back: waiting for more than this is not what a lease is for.
        return ttl_ms.clamp(10_000, RECOVERED_MS);
    }
    let gaps = &context.habits.gaps;
    let fleet_ms = if gaps.count() >= 5 { gaps.rough_quantile_ms(99) } else { 0 };
    let usual_ms = attempt.gap_max_ms.max(fleet_ms);
    // Of a holder that has not spoken often enough, only the length of others' work is known.
    let floor_ms = if attempt.gaps < 3 {
        STALL_BLIND_MS.max(context.totals.compute.max_ms() * 2)
    } else {
        STALL_MIN_MS
    };
    (usual_ms * 4).max(ttl_ms * 2).max(floor_ms)
}

/// A worker that went on elsewhere all the while did not crash.
fn cause_of_silence(
    attempt: &Attempt,
    until: Timestamp,
    context: &Context<'_>,
) -> (Cause, Confidence) {
    if attempt.ended(End::Exited) {
        return (Cause::Crash, Confidence::Certain);
    }
    let from = attempt.last_sign.at;
    let silent_ms = until.since_ms(from);
    let everywhere_ms = context.tracks.silence_ms(attempt.worker, from, until);
    let alive = context
        .tracks
        .last_seen(attempt.worker)
        .is_some_and(|seen| seen.since_ms(from) > silent_ms / 2);
    if alive && everywhere_ms < silent_ms / 4 {
        (Cause::Stuck, Confidence::Possible)
    } else {
        (Cause::Crash, Confidence::Likely)
    }
}
