//! Tells a finding in plain sentences, in the order in which things happened.

use palisade_core::Timestamp;

use super::attempt::{Attempt, Done, End, Mark};
use super::resource::{Context, Resource, who};
use super::verdict::Draft;
use super::{Cause, Confidence, Finding, Kind, StoryLine};
use crate::words::{count, span};

/// What a line of a story is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tag {
    Granted,
    LastWork,
    LastSign,
    RenewFailed,
    RanOut,
    Denied,
    Resumed,
    WentOn,
    After,
    Effect,
    Ended,
    ForeignReleased,
    TheEnd,
}

/// A line on its way into a story.
struct Told {
    mark: Mark,
    /// Whether an entry shows it.
    shown: bool,
    tag: Tag,
    attempt: usize,
    text: String,
}

impl Resource {
    /// A finding from its draft.
    pub(crate) fn tell(&self, draft: Draft, now: Timestamp, context: &Context<'_>) -> Finding {
        let mut lines = Vec::new();
        for index in &draft.attempts {
            self.tell_attempt(*index, &draft, context, &mut lines);
        }
        self.tell_foreign(&draft, context, &mut lines);
        if draft.kind == Kind::Stall || draft.kind == Kind::LostWork {
            self.tell_waiting(&draft, now, &mut lines);
        }
        lines.sort_by_key(|line| (line.mark.at, line.tag, line.mark.source));
        lines.dedup_by(|a, b| a.text == b.text && a.mark.at == b.mark.at);
        let mistake = mistaken_line(&lines, draft.mistake);
        let until = draft.until;
        let story = lines
            .into_iter()
            .enumerate()
            .map(|(index, line)| StoryLine {
                at: line.mark.at,
                mistake: mistake == Some(index),
                text: line.text,
                source: line.shown.then_some(line.mark.source),
            })
            .filter(|line| line.at <= until || line.mistake);
        let mut workers: Vec<String> = Vec::new();
        let named = match draft.kind {
            Kind::ForeignRelease if draft.others.is_empty() => &draft.attempts[..2],
            Kind::Pause | Kind::LateEffect | Kind::ForeignRelease | Kind::Stall => {
                &draft.attempts[..1]
            }
            _ => &draft.attempts[..],
        };
        let sources = || named.iter().map(|index| self.attempts[*index].first.source);
        let doubtful = sources().any(|a| sources().any(|b| context.settings.doubts(a, b)));
        let confidence = if doubtful { Confidence::Possible } else { draft.confidence };
        let others = draft.others.iter().map(|worker| who(*worker, context.workers));
        let owners = named.iter().map(|index| self.named(*index, context));
        let at_fault_first: Vec<String> = match draft.kind {
            // A stranger released somebody's lock.
            Kind::ForeignRelease => others.chain(owners).collect(),
            _ => owners.chain(others).collect(),
        };
        for name in at_fault_first {
            if !workers.contains(&name) {
                workers.push(name);
            }
        }
        Finding {
            kind: draft.kind,
            resource: context.name.to_owned(),
            workers,
            cause: draft.cause,
            confidence,
            at: draft.at,
            until: draft.until,
            cost_ms: draft.cost_ms,
            headline: draft.headline,
            story: story.collect(),
            prevented_by: prevented_by(draft.kind, draft.cause),
            landed: draft.landed,
        }
    }

    fn tell_attempt(
        &self,
        index: usize,
        draft: &Draft,
        context: &Context<'_>,
        lines: &mut Vec<Told>,
    ) {
        let attempt = &self.attempts[index];
        let who = self.named(index, context);
        let mut say = |tag: Tag, mark: Mark, shown: bool, text: String| {
            lines.push(Told { mark, shown, tag, attempt: index, text });
        };
        say(Tag::Granted, attempt.first, true, granted(attempt, &who, context.name));
        if let Some(pause) = attempt.pause {
            say(Tag::LastSign, pause.from, true, format!("{who} is heard of, then falls silent"));
            let seen = if pause.reported { "it reports" } else { "of silence" };
            let unaware = if attempt.taken.is_some() {
                ", unaware that its lease has gone to another"
            } else {
                ", though its lease has run out meanwhile"
            };
            let length = span(pause.length_ms);
            say(
                Tag::Resumed,
                pause.to,
                true,
                format!("{who} goes on after {length} {seen}{unaware}"),
            );
        } else if matches!(draft.mistake, (Tag::LastSign, who, _) if who == index) {
            let text = format!("{who} gives its last sign of life");
            say(Tag::LastSign, attempt.last_sign, true, text);
        }
        if matches!(draft.mistake, (Tag::LastWork, who, _) if who == index) {
            let text = format!("{who}'s work is heard of for the last time; its renewals go on");
            say(Tag::LastWork, attempt.last_work, true, text);
            say(Tag::LastSign, attempt.last_sign, true, format!("{who} renews for the last time"));
        }
        if let Some(failed) = &attempt.failed {
            let why = failed.detail.as_deref().map_or(String::new(), |why| format!(" ({why})"));
            let times = if failed.count > 1 {
                format!(", {} in all", count(u64::from(failed.count), "time", "times"))
            } else {
                String::new()
            };
            say(
                Tag::RenewFailed,
                failed.first,
                true,
                format!("{who} cannot renew its lease{why}{times}"),
            );
        }
        if let Some(ignored) = attempt.ignored {
            let text = format!("{who} works on, although it could not renew");
            say(Tag::WentOn, ignored, true, text);
        } else if let Some(after) = attempt.after
            && attempt.pause.is_none_or(|pause| pause.to != after)
        {
            let owner = attempt.taken.as_ref().map(|taken| self.named(taken.by, context));
            let beside = owner.map_or(String::new(), |owner| format!(", beside {owner}"));
            say(Tag::After, after, true, format!("{who} is still at work{beside}"));
        }
        self.tell_outcome(index, draft, context, lines);
    }

    /// How an attempt's lease ran out, what it brought about, and how it ended.
    fn tell_outcome(
        &self,
        index: usize,
        draft: &Draft,
        context: &Context<'_>,
        lines: &mut Vec<Told>,
    ) {
        let attempt = &self.attempts[index];
        let who = self.named(index, context);
        let mut say = |tag: Tag, mark: Mark, shown: bool, text: String| {
            lines.push(Told { mark, shown, tag, attempt: index, text });
        };
        let deadline = match &attempt.taken {
            Some(taken) => taken.deadline.filter(|deadline| *deadline <= taken.mark.at),
            None => attempt.deadline.filter(|_| draft.kind != Kind::DuplicateEffect),
        };
        if let Some(deadline) = deadline
            && attempt.end.is_none_or(|(_, mark)| mark.at > deadline)
            && deadline <= draft.until.max(attempt.over().at)
        {
            let mark = Mark { at: deadline, source: attempt.first.source };
            say(Tag::RanOut, mark, false, format!("{who}'s lease runs out"));
        }
        for effect in attempt.effects.iter().filter(|effect| concerns(draft.kind, effect)) {
            say(Tag::Effect, effect.mark, true, self.tell_effect(index, effect, context));
        }
        if let Some((how, mark)) = attempt.end {
            let foreign = self.foreign.iter().any(|foreign| foreign.mark == mark);
            if !foreign {
                say(Tag::Ended, mark, how != End::Restarted, ended(how, &who, context.name));
            }
        }
    }

    fn tell_effect(&self, index: usize, effect: &Done, context: &Context<'_>) -> String {
        let who = self.named(index, context);
        let kind = effect.kind.as_deref().unwrap_or("effect");
        let detail = effect.detail.as_deref().map_or(String::new(), |text| format!(" ({text})"));
        let token = effect.token.map_or(String::new(), |token| format!(" with token {token}"));
        let outcome = if effect.refused { "is refused" } else { "lands" };
        let taken = self.attempts[index].taken.as_ref().filter(|_| effect.late);
        let although = taken.map_or(String::new(), |taken| {
            let owner = self.named(taken.by, context);
            format!(", after {} had gone to {owner}", context.name)
        });
        format!("{who}'s {kind}{detail}{token} {outcome}{although}")
    }

    fn tell_foreign(&self, draft: &Draft, context: &Context<'_>, lines: &mut Vec<Told>) {
        for foreign in &self.foreign {
            let concerned = draft.attempts.contains(&foreign.victim)
                || foreign.by.is_some_and(|by| draft.attempts.contains(&by));
            if !concerned || !foreign.freed(&self.attempts[foreign.victim]) {
                continue;
            }
            let releaser = who(foreign.worker, context.workers);
            let owner = self.named(foreign.victim, context);
            lines.push(Told {
                mark: foreign.mark,
                shown: true,
                tag: Tag::ForeignReleased,
                attempt: foreign.by.unwrap_or(foreign.victim),
                text: format!("{releaser} releases {}, which is {owner}'s", context.name),
            });
        }
    }

    fn tell_waiting(&self, draft: &Draft, now: Timestamp, lines: &mut Vec<Told>) {
        let index = draft.attempts[0];
        let taken = self.attempts[index].taken.as_ref();
        let waiting = taken.map_or(self.waiting, |taken| taken.waiting);
        let mut say = |tag: Tag, mark: Mark, shown: bool, text: String| {
            lines.push(Told { mark, shown, tag, attempt: index, text });
        };
        if let (Some(first), Some(last)) = (waiting.first, waiting.last) {
            let denials = count(u64::from(waiting.count), "denial", "denials");
            say(Tag::Denied, first, true, format!("others are denied from here on ({denials})"));
            if last != first {
                say(Tag::Denied, last, true, "the last denial".to_owned());
            }
        }
        if taken.is_none() {
            let source = self.attempts[index].last_sign.source;
            let text = match draft.kind {
                Kind::LostWork => "the history ends; nobody has taken the work up",
                _ => "the history ends; it is still held",
            };
            say(Tag::TheEnd, Mark { at: now, source }, false, text.to_owned());
        }
    }
}

/// The line that tells the mistake: the very one, or else what comes nearest to it.
fn mistaken_line(lines: &[Told], (tag, attempt, at): (Tag, usize, Timestamp)) -> Option<usize> {
    let exact = |line: &Told| (line.tag, line.attempt, line.mark.at) == (tag, attempt, at);
    let going_on = |line: &Told| {
        line.attempt == attempt && matches!(line.tag, Tag::WentOn | Tag::Resumed | Tag::After)
    };
    let before = |line: &Told| line.mark.at <= at;
    let place = |fits: &dyn Fn(&Told) -> bool| lines.iter().position(fits);
    place(&exact)
        .or_else(|| place(&|line| line.tag == tag && line.attempt == attempt))
        .or_else(|| place(&going_on))
        .or_else(|| lines.iter().rposition(before))
        .or_else(|| (!lines.is_empty()).then_some(0))
}

/// Which effects belong into which story.
fn concerns(kind: Kind, effect: &Done) -> bool {
    match kind {
        Kind::LateEffect => effect.late,
        Kind::DuplicateEffect => !effect.refused,
        Kind::Overlap | Kind::RenewalIgnored | Kind::ForeignRelease => true,
        _ => false,
    }
}

fn granted(attempt: &Attempt, who: &str, name: &str) -> String {
    if attempt.granted.is_none() {
        return format!("{who} is at work on {name}; its grant is not in the history");
    }
    let ttl = match attempt.ttl_ms {
        Some(ttl_ms) => format!(" for {}", span(ttl_ms)),
        None => ", without expiry".to_owned(),
    };
    let token = attempt.token.map_or(String::new(), |token| format!(", token {token}"));
    format!("{who} is granted {name}{ttl}{token}")
}

fn ended(how: End, who: &str, name: &str) -> String {
    match how {
        End::Completed => format!("{who} reports the work as complete"),
        End::Released => format!("{who} releases {name}"),
        End::Exited => format!("{who}'s process ends"),
        End::Restarted => format!("{who} is not heard of again under that grant"),
    }
}

/// What would have prevented a fault.
const fn prevented_by(kind: Kind, cause: Cause) -> &'static str {
    match (kind, cause) {
        (Kind::Stall, Cause::Stuck) => {
            "A limit on progress: a heartbeat that goes on while the work does not must end the \
             attempt."
        }
        (Kind::Stall, _) => {
            "A lease that expires unless it is renewed: a crash then costs a ttl, not the job."
        }
        (Kind::LateEffect | Kind::DuplicateEffect, _) => {
            "Fencing: each grant carries a rising token, each effect carries the token, and what \
             it lands on refuses a lower one; completion recorded once, on condition."
        }
        (Kind::Overlap, Cause::RenewalIgnored) | (Kind::RenewalIgnored, _) => {
            "Self-abort: a holder that cannot confirm its lease before the deadline stops its own \
             work."
        }
        (Kind::Overlap, Cause::Pause) | (Kind::Pause, _) => {
            "Nothing prevents a pause. A longer ttl makes it rarer, fencing makes it harmless: it \
             then costs duplicate compute and no duplicate effect."
        }
        (Kind::Overlap, Cause::ForeignRelease) | (Kind::ForeignRelease, _) => {
            "A release that names its grant (token and lease id) and does nothing if the lock is \
             another's by now."
        }
        (Kind::Overlap, Cause::LostGrant) | (Kind::LostGrant, _) => {
            "A lock service that is durable before it answers. As none can be trusted entirely: \
             fencing where the effects land."
        }
        (Kind::Overlap, _) => {
            "Renewing the lease while the work lasts, and stopping when that fails; fencing for \
             what remains."
        }
        (Kind::LostWork, _) => {
            "A queue that makes a job claimable again when its lease runs out, rather than a lock \
             that somebody has to ask for."
        }
        (Kind::TokenRegression, _) => {
            "A counter that outlives the lock: deleting or expiring a lock must not start its \
             numbers again."
        }
    }
}
