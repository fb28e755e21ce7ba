//! People who use a lock and write a fenced object under it: they wait for their turn, renew, are
//! paused between any two steps, die, and never hear half of the answers.
//!
//! Whoever is paused goes on as if nothing had happened, as a process would: it is the store that
//! must refuse it.

mod ask;

pub(crate) use ask::object_key;

use palisade_core::{Digest, LeaseId, Number, Timestamp, lease::Pair};
use palisade_store::{Failure, command::Answer};

use crate::random::Dice;

use super::{
    network::{Address, Body, Message},
    plan::Plan,
    world::{Event, World},
};

/// How many people there are.
const PEOPLE: usize = 3;
/// How often each wants the lock.
const TURNS: u32 = 3;
/// How long an answer is waited for, in ms.
pub(super) const PATIENCE_MS: u64 = 1_500;

/// Where somebody is in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It wants the lock.
    Acquiring,
    /// It asks where its bytes go.
    Begin,
    /// It says that they are there.
    Finish(Number),
    /// It writes the object, for the first time or the second.
    Put(Number, u64),
    /// It gives the lock back.
    Releasing,
    /// It has done what it wanted.
    Over,
}

/// Somebody.
#[derive(Debug)]
pub(crate) struct Locker {
    /// Which.
    pub index: usize,
    /// Where it is.
    pub stage: Stage,
    /// Which turn: a request of an earlier one is another request.
    pub turn: u32,
    /// How often it died.
    pub lives: u32,
    /// Its grant, as it believes.
    pub pair: Option<Pair>,
    /// The other half of the pair that it asks for.
    pub lease_id: LeaseId,
    /// What it writes.
    pub content: Digest,
    /// The call that it waits for, and since when.
    pub call: Option<(u64, u64)>,
    /// Until when it may trust its lease.
    pub trusts_until: u64,
    /// When it does its next step.
    wakes_at: u64,
    /// Up to when it is stopped: it does nothing before, and hears nothing.
    stopped_until: u64,
    dice: Dice,
}

/// A grant as it was heard, with what its holder may rely on.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// The pair.
    pub pair: Pair,
    /// When it was asked for first.
    pub asked_at: u64,
    /// When it was heard.
    pub heard_at: u64,
    /// Whose it was.
    pub who: usize,
    /// From when to when its holder could rely on it.
    pub trusted: (u64, u64),
}

/// A write of the object that was acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct Put {
    /// The token and the op.
    pub stamp: (Number, u64),
    /// When it was asked first.
    pub asked_at: u64,
    /// When it was answered.
    pub told_at: u64,
}

/// All of them, and what they saw.
#[derive(Debug, Default)]
pub(crate) struct Lockers {
    /// The people.
    pub people: Vec<Locker>,
    /// Grants heard, in order.
    pub turns: Vec<Turn>,
    /// Writes acknowledged, in order.
    pub puts: Vec<Put>,
    /// Answers that nobody should get.
    pub wrong: Vec<String>,
}

impl Lockers {
    /// People with everything before them.
    pub(crate) fn new(dice: &Dice) -> Self {
        let person = |index| Locker {
            index,
            stage: Stage::Acquiring,
            turn: 1,
            lives: 0,
            pair: None,
            lease_id: LeaseId(0),
            content: Digest::of(b""),
            call: None,
            trusts_until: 0,
            wakes_at: 1_000 + 3_000 * index as u64,
            stopped_until: 0,
            dice: dice.fork(&format!("locker {index}")),
        };
        Self { people: (0..PEOPLE).map(person).collect(), ..Self::default() }
    }

    /// Whether everybody has done what it wanted.
    pub(crate) fn are_done(&self) -> bool {
        self.people.iter().all(Locker::is_over)
    }
}

impl World {
    /// Somebody's next step, or its end, or a pause.
    pub(super) fn locker_steps(&mut self, index: usize) {
        let person = &mut self.lockers.people[index];
        // What was to wake it before it changed its mind is past.
        if person.stage == Stage::Over || self.now != person.wakes_at {
            return;
        }
        let Plan { crash, pause, pause_ms, .. } = self.plan;
        if !self.healed && person.dice.per_mille(crash / 2) {
            // It died: whatever it held is the lease's business now.
            self.relies_no_more(index);
            let person = &mut self.lockers.people[index];
            self.trace.tell(self.now, &person.name(), format_args!("crashes"));
            person.lives += 1;
            person.begin_turn();
            let back_ms = person.dice.between(100, 3_000);
            self.locker_wakes_after(index, back_ms);
            return;
        }
        if !self.healed && person.dice.per_mille(pause / 2) {
            let ms = person.dice.between(50, pause_ms);
            person.stopped_until = self.now + ms;
            self.trace.tell(self.now, &person.name(), format_args!("is paused for {ms} ms"));
            self.locker_wakes_after(index, ms);
            return;
        }
        let late = person.call.is_none_or(|(_, since)| self.now >= since + PATIENCE_MS);
        if late {
            self.locker_asks(index);
        }
        if self.now == self.lockers.people[index].wakes_at {
            self.locker_wakes_after(index, PATIENCE_MS);
        }
    }

    /// Its next step is then, and not earlier.
    fn locker_wakes_after(&mut self, index: usize, ms: u64) {
        let at = self.now + ms;
        self.lockers.people[index].wakes_at = at;
        self.schedule(at, Event::Locker(index));
    }

    /// The server answered somebody.
    pub(super) fn locker_hears(&mut self, call: u64, answer: Result<Answer, Failure>) {
        let mut people = self.lockers.people.iter();
        let waits = |person: &Locker| person.call.is_some_and(|(waited, _)| waited == call);
        let Some(index) = people.position(waits) else { return };
        let person = &self.lockers.people[index];
        let (stage, stopped_until) = (person.stage, person.stopped_until);
        if self.now < stopped_until {
            // It lies in its socket until then.
            let (from, to, body) = (Address::Server, Address::Locker, Body::Answer(answer.into()));
            self.schedule(stopped_until, Event::Deliver(Message { from, to, call, body }));
            return;
        }
        self.locker_learns(index, stage, answer);
    }
}

impl Locker {
    /// Whether it has done what it wanted.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// What it calls itself.
    pub(super) fn name(&self) -> String {
        format!("holder-{}", self.index)
    }

    /// Starts its turn anew.
    pub(super) fn begin_turn(&mut self) {
        self.stage = Stage::Acquiring;
        self.pair = None;
        self.call = None;
        self.trusts_until = 0;
    }

    /// Goes on to the next turn, or is done.
    pub(super) fn end_turn(&mut self) {
        self.turn += 1;
        self.begin_turn();
        if self.turn > TURNS {
            self.stage = Stage::Over;
        }
    }

    /// How long it thinks before its next step, in ms.
    pub(super) fn thinks_ms(&mut self, most_ms: u64) -> u64 {
        self.dice.between(1, most_ms)
    }

    /// A fresh lease id.
    pub(super) fn new_lease_id(&mut self) -> LeaseId {
        LeaseId(self.dice.next_u128())
    }
}

/// Far enough away.
pub(super) const FOR_EVER: Timestamp = Timestamp(Number::MAX.get());
