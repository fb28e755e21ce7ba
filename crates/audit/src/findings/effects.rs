//! Effects that came too late, and effects that landed twice.

use super::attempt::{Attempt, Done, End};
use super::resource::{Context, Resource};
use super::story::Tag;
use super::verdict::Draft;
use super::{Cause, Confidence, Kind};
use crate::words::{list, span};

impl Resource {
    pub(crate) fn find_late_effects(&self, context: &Context<'_>, drafts: &mut Vec<Draft>) {
        for (index, attempt) in self.attempts.iter().enumerate() {
            let late: Vec<&Done> = attempt.effects.iter().filter(|effect| effect.late).collect();
            let (Some(first), Some(last)) = (late.first(), late.last()) else { continue };
            let landed = late.iter().any(|effect| !effect.refused);
            let (cause, confidence) = self.cause_of_loss(index);
            let who = self.named(index, context);
            let owner = attempt.taken.as_ref().map(|taken| self.named(taken.by, context));
            let whose = owner.map_or("its lease was gone".to_owned(), |owner| {
                format!("the lease had gone to {owner}")
            });
            let outcome = if landed { "landed" } else { "was refused" };
            let overlaps = self.both.iter().any(|both| both.loser == index);
            let mut attempts = vec![index];
            attempts.extend(attempt.taken.as_ref().map(|taken| taken.by));
            drafts.push(Draft {
                kind: Kind::LateEffect,
                cause,
                confidence: confidence.max(Confidence::Likely),
                attempts,
                others: Vec::new(),
                at: first.mark.at,
                until: last.mark.at,
                cost_ms: match attempt.after {
                    Some(_) if !overlaps => attempt.compute_ms(),
                    _ => 0,
                },
                headline: format!("{who}'s {} {outcome} after {whose}", kinds_of(&late)),
                mistake: (Tag::Effect, index, first.mark.at),
                landed: Some(landed),
            });
        }
    }

    pub(crate) fn find_duplicates(&self, context: &Context<'_>, drafts: &mut Vec<Draft>) {
        let mut works: Vec<u32> = self.attempts.iter().map(|attempt| attempt.work).collect();
        works.sort_unstable();
        works.dedup();
        for work in works {
            let mut landed: Vec<(usize, &Done)> = Vec::new();
            for (index, attempt) in self.attempts.iter().enumerate() {
                if attempt.work == work {
                    landed.extend(attempt.landed().map(|effect| (index, effect)));
                }
            }
            landed.sort_by_key(|(_, effect)| (effect.mark.at, effect.mark.source));
            let doubled = self.doubled(&landed, context);
            if let Some(draft) = self.duplicate(&doubled, context) {
                drafts.push(draft);
            }
        }
    }

    /// The effects that landed twice: each second landing with its first.
    fn doubled<'a>(
        &self,
        landed: &[(usize, &'a Done)],
        context: &Context<'_>,
    ) -> Vec<[(usize, &'a Done); 2]> {
        let mut doubled = Vec::new();
        for (position, second) in landed.iter().enumerate() {
            let first = landed[..position].iter().find(|first| {
                first.0 != second.0
                    && first.1.kind == second.1.kind
                    && self.same_effect(**first, *second, context)
            });
            if let Some(first) = first {
                doubled.push([*first, *second]);
            }
        }
        doubled
    }

    /// Whether two landings are of the same effect. Beside another's work, the same kind is
    /// enough; after a crash, where the second goes on from what the first left, the details must
    /// agree too.
    fn same_effect(
        &self,
        first: (usize, &Done),
        second: (usize, &Done),
        context: &Context<'_>,
    ) -> bool {
        let details_agree = match (&first.1.detail, &second.1.detail) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        let pair = |a, b| {
            self.both.iter().any(|both| {
                (both.loser, both.winner) == (a, b) || (both.loser, both.winner) == (b, a)
            })
        };
        if pair(first.0, second.0) || first.1.late || second.1.late {
            return details_agree || first.1.late || second.1.late;
        }
        // A holder that lands the same kind many times is not at one effect.
        let single = |(index, effect): (usize, &Done)| {
            let same = |other: &&Done| other.kind == effect.kind && other.detail == effect.detail;
            self.attempts[index].landed().filter(same).count() == 1
        };
        let crashed = |attempt: &Attempt| {
            !attempt.finished() && attempt.taken.is_some() && !attempt.ended(End::Completed)
        };
        details_agree
            && single(first)
            && single(second)
            && context.totals.completions > 0
            && crashed(&self.attempts[first.0])
    }

    fn duplicate(&self, doubled: &[[(usize, &Done); 2]], context: &Context<'_>) -> Option<Draft> {
        let last = doubled.last()?[1];
        let mut attempts: Vec<usize> = Vec::new();
        let mut effects: Vec<&Done> = Vec::new();
        for (index, effect) in doubled.iter().flatten() {
            if !attempts.contains(index) {
                attempts.push(*index);
            }
            effects.push(effect);
        }
        let loser = attempts.iter().copied().find(|index| {
            self.both.iter().any(|both| both.loser == *index)
                || self.attempts[*index].effects.iter().any(|effect| effect.late)
        });
        let (cause, confidence) = match loser {
            Some(loser) => self.cause_of_loss(loser),
            None => (Cause::Crash, Confidence::Likely),
        };
        let redone = if loser.is_none() {
            attempts[1..].iter().map(|index| self.attempts[*index].compute_ms()).sum()
        } else {
            0
        };
        let mut names: Vec<String> = Vec::new();
        for index in &attempts {
            let name = self.named(*index, context);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let first_second = doubled[0][1];
        let (at, until) = (doubled[0][0].1.mark.at, last.1.mark.at);
        Some(Draft {
            kind: Kind::DuplicateEffect,
            cause,
            confidence,
            attempts,
            others: Vec::new(),
            at,
            until,
            cost_ms: redone,
            headline: format!(
                "the {} landed more than once, by {}, {} apart",
                kinds_of(&effects),
                list(&names),
                span(until.since_ms(at))
            ),
            mistake: (Tag::Effect, first_second.0, first_second.1.mark.at),
            landed: Some(true),
        })
    }
}

/// `write and notify`, or `effect` where no kind is said.
fn kinds_of(effects: &[&Done]) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for effect in effects {
        let kind = effect.kind.as_deref().unwrap_or("effect");
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    list(&kinds)
}
