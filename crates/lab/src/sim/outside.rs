//! The outside world: a customer's storage, database and mail box. It sees what arrives, and keeps
//! a record of every effect that lasts, which is all that the checkers are fed.
//!
//! What it compares is what a real receiver would: a token and lease id, or a submission's number.
//! It knows nothing of leases, clocks or jobs' states.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{Digest, JobId, Number, lease::Pair};

use crate::sabotage::Sabotage;

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

/// What an effect shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Nothing but who writes, so that a call asked again is not taken twice.
    Bare(Pair),
    /// A grant's pair.
    Fenced(Pair),
    /// A submission's number, and the token of the grant that did it.
    Projected(Number, Number),
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
    /// What it showed.
    pub stamp: Stamp,
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
    bare: BTreeSet<(Kind, JobId, Pair)>,
    fenced: BTreeMap<(Kind, JobId), Placed>,
    pointers: BTreeMap<String, (Number, Digest)>,
    rows: BTreeMap<(Kind, Number), Digest>,
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
                    self.keep(effect, None, now);
                }
                Receipt::Done
            }
            Stamp::Fenced(pair) => self.receive_fenced(effect, pair, now),
            Stamp::Projected(number, _) => self.receive_projected(effect, number, now),
        }
    }

    /// What stands under a name now.
    pub(crate) fn published(&self, target: &str) -> Option<(Number, Digest)> {
        self.pointers.get(target).copied()
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
            self.keep(effect, None, now);
        }
        Receipt::Done
    }

    fn receive_projected(&mut self, effect: &Effect, number: Number, now: u64) -> Receipt {
        if effect.kind == Kind::Write {
            let standing = self.pointers.get(&effect.target).copied();
            if standing.is_some_and(|(highest, _)| number < highest) {
                return Receipt::Stale;
            }
            self.pointers.insert(effect.target.clone(), (number, effect.content));
            self.log_number(effect, effect.target.clone(), number);
            if standing != Some((number, effect.content)) {
                self.keep(effect, Some(number), now);
            }
            return Receipt::Done;
        }
        let standing = self.rows.insert((effect.kind, number), effect.content);
        if standing != Some(effect.content) {
            self.keep(effect, Some(number), now);
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

    fn keep(&mut self, effect: &Effect, submission: Option<Number>, at: u64) {
        self.lasting.push(Lasting {
            at,
            kind: effect.kind,
            job: effect.job,
            submission,
            target: effect.target.clone(),
            content: effect.content,
            stamp: effect.stamp,
        });
    }
}
