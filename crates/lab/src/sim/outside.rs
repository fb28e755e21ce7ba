//! The outside world: a customer's storage, database and mail box. It sees what arrives, and keeps
//! a record of every effect that lasts, which is all that the checkers are fed.
//!
//! What it compares is what a real receiver would: a token and lease id, or a notification's id.
//! Of a notification it knows what is in it; what is published it fetches by its name. It knows nothing of leases, clocks or jobs' states.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    Digest, JobId, Number,
    lease::Pair,
    object::Content,
    outbox::{EndpointId, EventId},
};
use palisade_store::query::Resolved;

use crate::{notice, sabotage::Sabotage};

/// A kind of effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The finished file, written to storage.
    Write,
    /// A row in the customer's database.
    Database,
    /// A notification.
    Notification,
}

impl Kind {
    /// All of them, in the order in which a worker does them.
    pub(crate) const ALL: [Self; 3] = [Self::Write, Self::Database, Self::Notification];

    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Database => "database",
            Self::Notification => "notification",
        }
    }
}

/// Where the customer wants to be told: its database writes a row, its mail box shows a mail.
pub(crate) const ENDPOINTS: [(EndpointId, Kind); 2] =
    [(EndpointId(1), Kind::Database), (EndpointId(2), Kind::Notification)];

/// A notification on its way.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    /// Its stable id.
    pub id: EventId,
    /// What it says.
    pub body: String,
}

/// What an effect shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Nothing but who writes, so that a call asked again is not taken twice.
    Bare(Pair),
    /// A grant's pair.
    Fenced(Pair),
}

/// Something done to the outside.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    /// What.
    pub kind: Kind,
    /// For which job.
    pub job: JobId,
    /// Under which name it is published.
    pub target: String,
    /// What is written, or told of.
    pub content: Digest,
    /// What it shows.
    pub stamp: Stamp,
    /// Only raise the fence: a new holder's first act.
    pub raise: bool,
}

/// What the outside answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// Done, now or before.
    Done,
    /// A lower number than one seen before.
    Stale,
    /// It cannot take it now, or says so; or says nothing.
    NotNow,
}

/// An effect that lasted, as an outsider sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lasting {
    /// When, in ms.
    pub at: u64,
    /// What.
    pub kind: Kind,
    /// For which job.
    pub job: JobId,
    /// For which wish, if the effect says so.
    pub submission: Option<Number>,
    /// Under which name.
    pub target: String,
    /// What was written, or told of.
    pub content: Digest,
}

/// What is in place under one name or key.
#[derive(Debug, Clone)]
struct Placed {
    pair: Pair,
    content: Option<Digest>,
}

/// The outside.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// Every effect that lasted, in order.
    pub lasting: Vec<Lasting>,
    /// Numbers that were accepted although a higher one had been, as an outsider's log shows.
    pub regressions: Vec<(Kind, JobId, Number)>,
    /// Letters that came before what was said earlier.
    pub disorder: Vec<EventId>,
    /// Letters that nobody could read.
    pub unreadable: Vec<EventId>,
    bare: BTreeSet<(Kind, JobId, Pair)>,
    fenced: BTreeMap<(Kind, JobId), Placed>,
    names: BTreeMap<String, (Number, JobId)>,
    letters: BTreeSet<EventId>,
    newest: BTreeMap<(EndpointId, JobId), Number>,
    highest: BTreeMap<(Kind, String), Number>,
    broken: Option<Sabotage>,
}

impl Outside {
    /// An outside that has seen nothing yet.
    pub(crate) fn new(broken: Option<Sabotage>) -> Self {
        Self { broken, ..Self::default() }
    }

    /// Takes an effect, or refuses it.
    pub(crate) fn receive(&mut self, effect: &Effect, now: u64) -> Receipt {
        match effect.stamp {
            Stamp::Bare(pair) => {
                if self.bare.insert((effect.kind, effect.job, pair)) {
                    self.keep(effect, now);
                }
                Receipt::Done
            }
            Stamp::Fenced(pair) => self.receive_fenced(effect, pair, now),
        }
    }

    /// Takes a letter: what it has had, by its id, it drops.
    pub(crate) fn hear(&mut self, letter: &Letter, at: u64) -> Receipt {
        let Some(heard) = notice::read(&letter.body) else {
            self.unreadable.push(letter.id);
            return Receipt::Done;
        };
        if !self.letters.insert(letter.id) {
            return Receipt::Done;
        }
        let (endpoint, job) = (letter.id.endpoint, heard.job);
        let newest = self.newest.entry((endpoint, job)).or_insert(heard.seq);
        if heard.seq < *newest {
            self.disorder.push(letter.id);
        }
        *newest = heard.seq.max(*newest);
        let place = ENDPOINTS.iter().find(|(id, _)| *id == endpoint);
        if let (Some((_, kind)), Some(content)) = (place, heard.made) {
            let (submission, target) = (Some(heard.submission), String::new());
            self.lasting.push(Lasting { at, kind: *kind, job, submission, target, content });
        }
        Receipt::Done
    }

    /// Whether it has had a letter.
    pub(crate) fn has(&self, id: EventId) -> bool {
        self.letters.contains(&id)
    }

    /// Somebody fetches what is published under a name.
    pub(crate) fn sees(&mut self, name: &str, shown: &Resolved, at: u64) {
        let Some(Content::Manifest { job, .. }) = shown.object.content else { return };
        let number = shown.object.last.number;
        let seen = self.names.insert(name.to_owned(), (number, job));
        if seen == Some((number, job)) {
            return;
        }
        if seen.is_some_and(|(seen, _)| number < seen) {
            self.regressions.push((Kind::Write, job, number));
        }
        let Some(content) = shown.manifest.as_ref().map(|made| made.outputs[0].digest) else {
            return;
        };
        let (kind, submission, target) = (Kind::Write, Some(number), name.to_owned());
        self.lasting.push(Lasting { at, kind, job, submission, target, content });
    }

    fn receive_fenced(&mut self, effect: &Effect, pair: Pair, now: u64) -> Receipt {
        let key = (effect.kind, effect.job);
        let placed = self.fenced.get(&key).cloned();
        let stale = placed.as_ref().is_some_and(|placed| {
            let stranger = pair.token == placed.pair.token && pair != placed.pair;
            pair.token < placed.pair.token || stranger
        });
        if stale && self.broken != Some(Sabotage::LowerTokensTaken) {
            return Receipt::Stale;
        }
        let old = placed.and_then(|placed| placed.content);
        let content = if effect.raise { old } else { Some(effect.content) };
        self.fenced.insert(key, Placed { pair, content });
        self.log_number(effect, effect.job.to_string(), pair.token);
        // The key is the job's: the same bytes, the same row, the same mail are one effect.
        if content != old {
            self.keep(effect, now);
        }
        Receipt::Done
    }

    fn log_number(&mut self, effect: &Effect, key: String, number: Number) {
        let highest = self.highest.entry((effect.kind, key)).or_insert(number);
        if number < *highest {
            self.regressions.push((effect.kind, effect.job, number));
        }
        *highest = (*highest).max(number);
    }

    fn keep(&mut self, effect: &Effect, at: u64) {
        self.lasting.push(Lasting {
            at,
            kind: effect.kind,
            job: effect.job,
            submission: None,
            target: effect.target.clone(),
            content: effect.content,
        });
    }
}
