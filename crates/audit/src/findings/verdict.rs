//! What a resource's attempts amount to, once they are over.

use palisade_core::Timestamp;

use super::attempt::How;
use super::resource::{Both, Context, Resource, who};
use super::story::Tag;
use super::{Cause, Confidence, Kind};
use crate::words::{clock, span};

/// A finding before its story is told.
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) cause: Cause,
    pub(crate) confidence: Confidence,
    /// The attempts whose story it is, the one at fault first.
    pub(crate) attempts: Vec<usize>,
    /// Further workers, who have no attempt.
    pub(crate) others: Vec<u32>,
    pub(crate) at: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) cost_ms: u64,
    pub(crate) headline: String,
    /// Which line of the story is the mistake: its tag, its attempt, and when.
    pub(crate) mistake: (Tag, usize, Timestamp),
    pub(crate) landed: Option<bool>,
}

impl Resource {
    /// Judges all that is remembered, tells it, and forgets it. `now` is the history's time;
    /// `over` says that no more of this resource is to come.
    pub(crate) fn conclude(&mut self, now: Timestamp, over: bool, context: &mut Context<'_>) {
        for attempt in &self.attempts {
            context.totals.attempts += 1;
            context.totals.compute.add(attempt.compute_ms());
            if let Some(ttl_ms) = attempt.ttl_ms {
                context.totals.ttl_ms = context.totals.ttl_ms.max(ttl_ms);
            }
        }
        if self.is_suspect() {
            let mut drafts = Vec::new();
            self.find_pauses(context, &mut drafts);
            self.find_lost_grants(context, &mut drafts);
            self.find_foreign_releases(context, &mut drafts);
            self.find_ignored_renewals(context, &mut drafts);
            self.find_overlaps(context, &mut drafts);
            self.find_late_effects(context, &mut drafts);
            self.find_duplicates(context, &mut drafts);
            self.find_regressions(context, &mut drafts);
            self.find_stalls(now, over, context, &mut drafts);
            drafts.sort_by_key(|draft| (draft.at, draft.kind));
            for draft in drafts {
                context.totals.note(&draft);
                if context.findings.len() < context.settings.findings_max {
                    let finding = self.tell(draft, now, context);
                    context.findings.push(finding);
                } else {
                    context.totals.dropped += 1;
                }
            }
        }
        if over && let Some(finding) = self.find_waits(now, context) {
            context.totals.kinds[Kind::Stall as usize] += 1;
            context.findings.push(finding);
        }
        let holder = self.holder.filter(|_| !over).map(|holder| self.attempts[holder].clone());
        self.clear();
        if let Some(mut attempt) = holder.filter(|attempt| attempt.end.is_none()) {
            attempt.taken = None;
            self.attempts.push(attempt);
            self.holder = Some(0);
        }
    }

    pub(crate) fn named(&self, index: usize, context: &Context<'_>) -> String {
        who(self.attempts[index].worker, context.workers)
    }

    /// Why an attempt had lost the resource while it was still at work.
    pub(crate) fn cause_of_loss(&self, index: usize) -> (Cause, Confidence) {
        let attempt = &self.attempts[index];
        let Some(taken) = &attempt.taken else {
            return (Cause::Unknown, Confidence::Possible);
        };
        match taken.how {
            // It would have lost it a little later all the same.
            How::LostGrant if attempt.revoked && attempt.pause.is_some() => {}
            How::LostGrant => return (Cause::LostGrant, Confidence::Certain),
            How::ForeignRelease => return (Cause::ForeignRelease, Confidence::Certain),
            How::Lapsed | How::Untimed | How::Ended | How::Unseen => {}
        }
        let failed_at = attempt.failed.as_ref().map(|failed| failed.first.at);
        if failed_at.is_some_and(|at| {
            at <= taken.mark.at && attempt.pause.is_none_or(|pause| at <= pause.from.at)
        }) {
            return (Cause::RenewalIgnored, Confidence::Certain);
        }
        if let Some(pause) = attempt.pause {
            return (Cause::Pause, pause.confidence());
        }
        if self.lost.iter().any(|lost| lost.first == index && lost.untimed) {
            return (Cause::LostGrant, Confidence::Possible);
        }
        (Cause::Unknown, Confidence::Possible)
    }

    fn find_pauses(&self, context: &Context<'_>, drafts: &mut Vec<Draft>) {
        for (index, attempt) in self.attempts.iter().enumerate() {
            let Some(pause) = attempt.pause else { continue };
            let who = self.named(index, context);
            let length = span(pause.length_ms);
            let lease = match (attempt.ttl_ms, &attempt.taken) {
                (Some(ttl_ms), Some(_)) => {
                    format!(", past its lease of {}, which went to another", span(ttl_ms))
                }
                (Some(ttl_ms), None) => format!(", past its lease of {}", span(ttl_ms)),
                (None, _) => ", while its lock went to another".to_owned(),
            };
            let mut attempts = vec![index];
            attempts.extend(attempt.taken.as_ref().map(|taken| taken.by));
            drafts.push(Draft {
                kind: Kind::Pause,
                cause: Cause::Pause,
                confidence: pause.confidence(),
                attempts,
                others: Vec::new(),
                at: pause.from.at,
                until: pause.to.at,
                cost_ms: 0,
                headline: format!("{who} stood still for {length}{lease}"),
                mistake: (Tag::Resumed, index, pause.to.at),
                landed: None,
            });
        }
    }

    fn find_lost_grants(&self, context: &Context<'_>, drafts: &mut Vec<Draft>) {
        let tolerance_ms = context.settings.tolerance_ms();
        for lost in &self.lost {
            let first = &self.attempts[lost.first];
            // Taken back before its time from one that is not heard of again: the service knew more.
            if lost.revoked && (first.after.is_none() || first.pause.is_some()) {
                continue;
            }
            let handed_over =
                first.finished() && first.over().at <= lost.mark.at.plus_ms(tolerance_ms);
            if handed_over {
                continue;
            }
            let (a, b) = (self.named(lost.first, context), self.named(lost.second, context));
            let deadline = first.taken.as_ref().and_then(|taken| taken.deadline);
            let left_ms = deadline.map_or(0, |deadline| deadline.since_ms(lost.mark.at));
            let headline = if lost.untimed {
                format!("{b} was granted it while {a} was at work and had not given it up")
            } else if lost.revoked {
                format!("{a}'s lease was taken back with {} left, and given to {b}", span(left_ms))
            } else {
                format!("{b} was granted it while {a}'s lease had {} left", span(left_ms))
            };
            // Clocks that may be wrong by more than what was left prove nothing.
            let near = !lost.untimed && left_ms < tolerance_ms.saturating_mul(4);
            let confidence = if lost.untimed || near {
                Confidence::Possible
            } else if first.after.is_some() {
                Confidence::Certain
            } else {
                Confidence::Likely
            };
            drafts.push(Draft {
                kind: Kind::LostGrant,
                cause: Cause::LostGrant,
                confidence,
                attempts: vec![lost.first, lost.second],
                others: Vec::new(),
                at: lost.mark.at,
                until: deadline.unwrap_or(lost.mark.at),
                cost_ms: 0,
                headline,
                mistake: (Tag::Granted, lost.second, lost.mark.at),
                landed: None,
            });
        }
    }

    fn find_foreign_releases(&self, context: &Context<'_>, drafts: &mut Vec<Draft>) {
        for foreign in &self.foreign {
            let victim = &self.attempts[foreign.victim];
            // A lock of the dead that somebody cleared away was rightly cleared.
            let cleared = foreign.by.is_none() && victim.last_sign.at <= foreign.mark.at;
            if cleared || !foreign.freed(victim) {
                continue;
            }
            let given_on = victim.taken.as_ref().filter(|taken| taken.how == How::ForeignRelease);
            let releaser = who(foreign.worker, context.workers);
            let owner = self.named(foreign.victim, context);
            let mut attempts: Vec<usize> = foreign.by.into_iter().collect();
            attempts.push(foreign.victim);
            attempts.extend(given_on.map(|taken| taken.by));
            let (index, others) = match foreign.by {
                Some(by) => (by, Vec::new()),
                None => (foreign.victim, vec![foreign.worker]),
            };
            drafts.push(Draft {
                kind: Kind::ForeignRelease,
                cause: Cause::ForeignRelease,
                confidence: match given_on {
                    Some(_) => Confidence::Certain,
                    None => Confidence::Likely,
                },
                attempts,
                others,
                at: foreign.mark.at,
                until: given_on.map_or(foreign.mark.at, |taken| taken.mark.at),
                cost_ms: 0,
                headline: format!("{releaser} released the lock that was {owner}'s"),
                mistake: (Tag::ForeignReleased, index, foreign.mark.at),
                landed: None,
            });
        }
    }

    fn find_ignored_renewals(&self, context: &Context<'_>, drafts: &mut Vec<Draft>) {
        for (index, attempt) in self.attempts.iter().enumerate() {
            let (Some(failed), Some(ignored)) = (&attempt.failed, attempt.ignored) else {
                continue;
            };
            let acted = attempt.after.is_some()
                || attempt.finished()
                || attempt.effects.iter().any(|effect| effect.mark.at >= ignored.at);
            if !acted {
                continue;
            }
            let who = self.named(index, context);
            let until = attempt.over().at;
            drafts.push(Draft {
                kind: Kind::RenewalIgnored,
                cause: Cause::RenewalIgnored,
                confidence: Confidence::Certain,
                attempts: vec![index],
                others: Vec::new(),
                at: failed.first.at,
                until,
                cost_ms: if attempt.taken.is_some() { 0 } else { until.since_ms(ignored.at) },
                headline: format!(
                    "{who} could not renew its lease at {} and went on for {}",
                    clock(failed.first.at),
                    span(until.since_ms(failed.first.at))
                ),
                mistake: (Tag::WentOn, index, ignored.at),
                landed: None,
            });
        }
    }

    /// Whose work came to nothing, of two attempts at one piece of work: the one that had lost the
    /// resource, unless its effect alone is what landed.
    fn in_vain(&self, loser: usize, winner: usize) -> usize {
        let landed = |index: usize| self.attempts[index].landed().next().is_some();
        if landed(loser) && !landed(winner) { winner } else { loser }
    }

    fn find_overlaps(&self, context: &Context<'_>, drafts: &mut Vec<Draft>) {
        let mut charged: Vec<usize> = Vec::new();
        for both in &self.both {
            let Both { loser, winner, from } = *both;
            let (a, b) = (&self.attempts[loser], &self.attempts[winner]);
            let until = a.over().at.min(b.over().at).max(from.at);
            let (cause, confidence) = self.cause_of_loss(loser);
            // All of an attempt was in vain, not only what ran beside another; but it is paid once.
            let in_vain = self.in_vain(loser, winner);
            let cost_ms = if charged.contains(&in_vain) {
                0
            } else {
                // A quiet stretch beside another's work may have been work that nobody logged.
                self.attempts[in_vain].compute_ms().max(until.since_ms(from.at))
            };
            charged.push(in_vain);
            let (a_name, b_name) = (self.named(loser, context), self.named(winner, context));
            let mistake = match (cause, a.ignored) {
                (Cause::LostGrant | Cause::ForeignRelease, _) => (Tag::Granted, winner, b.first.at),
                (Cause::RenewalIgnored, Some(ignored)) => (Tag::WentOn, loser, ignored.at),
                (Cause::Pause, _) => {
                    (Tag::Resumed, loser, a.pause.map_or(from.at, |pause| pause.to.at))
                }
                _ => (Tag::After, loser, a.after.map_or(from.at, |after| after.at)),
            };
            drafts.push(Draft {
                kind: Kind::Overlap,
                cause,
                confidence,
                attempts: vec![loser, winner],
                others: Vec::new(),
                at: from.at,
                until,
                cost_ms,
                headline: match until.since_ms(from.at) {
                    0 => format!("{a_name} and {b_name} were both at work on it"),
                    ms => format!("{a_name} and {b_name} worked on it at once for {}", span(ms)),
                },
                mistake,
                landed: None,
            });
        }
    }

    fn find_regressions(&self, context: &Context<'_>, drafts: &mut Vec<Draft>) {
        for regression in &self.regressions {
            let find = |mark| self.attempts.iter().position(|a| a.granted == Some(mark));
            let Some(index) = find(regression.mark) else { continue };
            let mut attempts = vec![index];
            attempts.extend(regression.above.mark.and_then(find).filter(|other| *other != index));
            let others = match attempts.len() {
                1 if regression.above.mark.is_some()
                    && regression.above.worker != regression.worker =>
                {
                    vec![regression.above.worker]
                }
                _ => Vec::new(),
            };
            let who = who(regression.worker, context.workers);
            drafts.push(Draft {
                kind: Kind::TokenRegression,
                cause: Cause::Unknown,
                confidence: Confidence::Certain,
                attempts,
                others,
                at: regression.mark.at,
                until: regression.mark.at,
                cost_ms: 0,
                headline: format!(
                    "{who} was granted token {}, though {} had been granted before",
                    regression.token, regression.above.token
                ),
                mistake: (Tag::Granted, index, regression.mark.at),
                landed: None,
            });
        }
    }
}
