//! Palisade's own journal as entries: what it records is told in the words of every other history.
//!
//! The journal does not tell of each renewal, but of every lease that ran out and went to another;
//! [`settings`] says so to the analysis. What an entry of the journal implies (the last renewal
//! before a lease ran out) becomes an entry too, with the same place.
//!
//! An entry's place is its position in the journal. A lock's name stands behind the word `lock`, so
//! that no job is taken for it; what is written to a fenced object is told of the lock or the job
//! whose holder wrote it.

mod locks;
mod queue;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use palisade_core::{
    LockName, Number, Timestamp,
    history::{Event, Subject, What},
    job::CloseReason,
};

use crate::{
    Entry, EventKind, Source,
    findings::{Analyser, Finding, Findings, Settings},
    timeline::{Collector, Timeline},
};

pub use locks::lock_resource;
pub use queue::{Queue, QueuedJob};

/// Closed attempts that are remembered for what comes late of them.
const CLOSED_MAX: usize = 100_000;
/// The code of a pair that was never granted.
const UNKNOWN: &str = "unknown_token";
/// The code of a write by a holder that had lost what it held.
const STALE: &str = "stale_token";
/// What stands between a job's id and the token in the name of a backup attempt.
const BACKUP: &str = " (backup ";
/// What the one effect of an attempt is called.
const COMPLETION: &str = "completion";

/// What the analysis may take for granted of our own journal.
pub fn settings() -> Settings {
    // One clock wrote all of it, in its order.
    Settings { slack_ms: 0, ends_are_told: true, ..Settings::default() }
}

/// Whether a resource is the backup attempt of a job, granted beside a live one.
pub fn is_backup_of(resource: &str, job: &str) -> bool {
    resource.strip_prefix(job).is_some_and(|rest| rest.starts_with(BACKUP))
}

/// The findings of a part of the journal: entries with their positions, oldest first.
pub fn diagnose<'e>(entries: impl Iterator<Item = (u64, &'e Event)>) -> Findings {
    let mut analyser = Analyser::new(settings());
    tell_all(entries, &mut |entry| analyser.push(entry));
    analyser.finish()
}

/// Pictures of all that a part of the journal tells of, with the pauses that were found.
pub fn timelines<'e>(
    entries: impl Iterator<Item = (u64, &'e Event)> + Clone,
    findings: &[Finding],
) -> Vec<Timeline> {
    let mut names = BTreeSet::new();
    tell_all(entries.clone(), &mut |entry| {
        names.insert(entry.resource.to_owned());
    });
    let mut collector = Collector::of_journal(names.iter().map(String::as_str));
    tell_all(entries, &mut |entry| collector.push(entry));
    collector.finish(findings)
}

fn tell_all<'e>(entries: impl Iterator<Item = (u64, &'e Event)>, sink: &mut dyn FnMut(&Entry<'_>)) {
    let mut translator = Translator::default();
    for (position, event) in entries {
        translator.push(position, event, sink);
    }
}

/// Turns journal entries into entries of a history, one after another.
#[derive(Debug, Default)]
pub struct Translator {
    /// Attempts of jobs and grants of locks: both have tokens of one counter.
    attempts: BTreeMap<Number, Known>,
    closed: VecDeque<Number>,
    /// Locks of which a grant is open.
    held: BTreeSet<LockName>,
    /// Places in queues that were told of, and are not given up yet.
    waiting: BTreeSet<Number>,
}

/// What is known of an attempt.
#[derive(Debug)]
struct Known {
    worker: String,
    /// Its job; a backup attempt's has a name of its own.
    resource: String,
    granted_at: Timestamp,
    lapsed: bool,
    closed: Option<Ended>,
    /// It was told that it had lost what it held.
    hears_of_loss: bool,
}

/// How an attempt, or a grant of a lock, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was over in good order.
    Well,
    /// Its time was over, and another was granted what it had held.
    Lost,
}

/// An entry of the journal, and where what it says goes.
struct Telling<'t> {
    at: Timestamp,
    position: u64,
    sink: &'t mut dyn FnMut(&Entry<'_>),
}

impl Telling<'_> {
    const fn source(&self) -> Source {
        Source { file: 0, line: self.position }
    }

    fn entry<'a>(&self, attempt: &'a Known, event: EventKind) -> Entry<'a> {
        Entry {
            source: self.source(),
            ..Entry::new(self.at, &attempt.worker, &attempt.resource, event)
        }
    }

    fn say(&mut self, attempt: &Known, event: EventKind) {
        let entry = self.entry(attempt, event);
        (self.sink)(&entry);
    }

    fn say_at(&mut self, at: Timestamp, attempt: &Known, event: EventKind) {
        let entry = Entry { at, ..self.entry(attempt, event) };
        (self.sink)(&entry);
    }

    /// The renewal before, of which the journal had no entry of its own.
    fn say_renewed_before(&mut self, attempt: &Known, renewed_at: Timestamp) {
        if renewed_at > attempt.granted_at {
            self.say_at(renewed_at, attempt, EventKind::Renewed);
        }
    }

    fn say_effect(
        &mut self,
        attempt: &Known,
        event: EventKind,
        token: Number,
        (kind, detail): (&str, Option<&str>),
    ) {
        let entry = Entry {
            token: Some(token.get()),
            kind: Some(kind),
            detail,
            ..self.entry(attempt, event)
        };
        (self.sink)(&entry);
    }
}

impl Translator {
    /// Takes the next entry of the journal, and hands what it says to `sink`.
    pub fn push(&mut self, position: u64, event: &Event, sink: &mut dyn FnMut(&Entry<'_>)) {
        let mut telling = Telling { at: event.at, position, sink };
        match &event.what {
            What::Granted { token, worker, ttl_ms, backup, .. } => {
                let whose = if *backup {
                    // Granted beside a live attempt on purpose: its lease is its own.
                    format!("{}{BACKUP}{token})", event.subject)
                } else {
                    event.subject.to_string()
                };
                self.grant(*token, (worker.to_string(), whose), *ttl_ms, &mut telling);
            }
            What::Renewed { token } => {
                if let Some(known) = self.attempts.get(token) {
                    telling.say(known, EventKind::Renewed);
                }
            }
            What::RenewedLate { token, renewed_at, .. } => {
                if let Some(known) = self.attempts.get(token) {
                    telling.say_renewed_before(known, *renewed_at);
                    telling.say(known, EventKind::Renewed);
                }
            }
            What::Lapsed { token, renewed_at, deadline } => {
                if let Some(known) = self.attempts.get_mut(token) {
                    known.lapsed = true;
                    telling.say_renewed_before(known, *renewed_at);
                    telling.say_at((*deadline).min(event.at), known, EventKind::Expired);
                }
            }
            What::Closed { token, reason, .. } => self.close(*token, *reason, &mut telling),
            What::Refused { verb, token, code, .. } => {
                if let Some(known) = self.attempts.get_mut(token) {
                    refuse(known, &event.subject, (verb, *token, code), &mut telling);
                }
            }
            What::Paused { token, pause_ms } => {
                if let Some(known) = self.attempts.get(token) {
                    let duration_ms = Some(*pause_ms);
                    let entry = Entry { duration_ms, ..telling.entry(known, EventKind::Paused) };
                    (telling.sink)(&entry);
                }
            }
            What::LockGranted { .. }
            | What::LockClosed { .. }
            | What::LockWaiting { .. }
            | What::LockLeft { .. }
            | What::ObjectWritten { .. } => self.push_of_lock(event, &mut telling),
            // What concerns no attempt, or says no more than the entries beside it.
            What::Submitted { .. }
            | What::Withdrawn { .. }
            | What::Suspected { .. }
            | What::Moved { .. }
            | What::Retried
            | What::ObjectRaised { .. }
            | What::Released
            // What was told to others afterwards changes nothing of the attempts.
            | What::NotificationDelivered(_)
            | What::NotificationDead(_)
            | What::NotificationAgain(_)
            // The attempt's one effect is its completion; these follow from it.
            | What::Published { .. }
            | What::NotPublished { .. } => {}
        }
    }

    fn grant(
        &mut self,
        token: Number,
        (worker, resource): (String, String),
        ttl_ms: u64,
        telling: &mut Telling<'_>,
    ) {
        let granted_at = telling.at;
        let hears_of_loss = false;
        let known =
            Known { worker, resource, granted_at, lapsed: false, closed: None, hears_of_loss };
        let entry = Entry {
            ttl_ms: Some(ttl_ms),
            token: Some(token.get()),
            ..telling.entry(&known, EventKind::Acquired)
        };
        (telling.sink)(&entry);
        self.attempts.insert(token, known);
    }

    fn close(&mut self, token: Number, reason: CloseReason, telling: &mut Telling<'_>) {
        let Some(known) = self.attempts.get_mut(&token) else { return };
        let lost = reason == CloseReason::Superseded;
        known.closed = Some(if lost { Ended::Lost } else { Ended::Well });
        match reason {
            CloseReason::Completed => {
                telling.say_effect(known, EventKind::Effect, token, (COMPLETION, None));
                telling.say(known, EventKind::Completed);
            }
            CloseReason::Superseded if known.lapsed => {}
            CloseReason::Superseded => telling.say(known, EventKind::Expired),
            CloseReason::Failed
            | CloseReason::Released
            | CloseReason::Outrun
            | CloseReason::Cancelled => telling.say(known, EventKind::Released),
        }
        self.remember_closed(token);
    }

    fn remember_closed(&mut self, token: Number) {
        self.closed.push_back(token);
        if self.closed.len() > CLOSED_MAX
            && let Some(oldest) = self.closed.pop_front()
        {
            self.attempts.remove(&oldest);
        }
    }
}

/// A verb that came too late. Of an attempt that was given up in good order (its job cancelled, or
/// outrun by a backup) that is no fault; of one that was lost it is the pauser's last act.
fn refuse(
    known: &mut Known,
    subject: &Subject,
    (verb, token, code): (&str, Number, &str),
    telling: &mut Telling<'_>,
) {
    // A right token with a wrong lease id is a stranger's: it says nothing of the worker.
    if code == UNKNOWN || known.closed != Some(Ended::Lost) {
        return;
    }
    match (subject, verb) {
        (Subject::Object(_), _) if code == STALE => {
            telling.say_effect(known, EventKind::Refused, token, (verb, Some(code)));
        }
        (Subject::Job(_), "complete") => {
            telling.say_effect(known, EventKind::Refused, token, (COMPLETION, Some(code)));
        }
        // It had worked until then, unless it knew already: then it only tidies up.
        (Subject::Job(_), "fail") | (Subject::Lock(_), "release") if !known.hears_of_loss => {
            telling.say(known, EventKind::Progress);
        }
        // It hears of its loss.
        (Subject::Lock(_), "renew") => {
            known.hears_of_loss = true;
            let entry = telling.entry(known, EventKind::RenewFailed);
            (telling.sink)(&Entry { detail: Some("lost"), ..entry });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
