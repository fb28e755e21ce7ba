//! Messages, and what becomes of them on the way: lost, delayed, repeated, reordered, cut off.

use std::collections::BTreeSet;

use palisade_core::{Digest, Number, SessionId};
use palisade_store::{
    Failure,
    command::{Answer, Command},
};

use super::{
    outside::{Effect, Letter, Receipt},
    world::{Event, World},
};

/// Somebody who sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    /// The server.
    Server,
    /// A worker.
    Worker(usize),
    /// Whoever submits, and the operator.
    Submitter,
    /// Somebody who means no good, or a client with a bug.
    Stranger,
    /// People who use a lock.
    Locker,
    /// The customer's storage, database and mail box.
    Outside,
    /// The object store that holds the blobs.
    Blobs,
}

/// One message.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// From whom.
    pub from: Address,
    /// To whom.
    pub to: Address,
    /// Which call it belongs to. A call asked again keeps its id.
    pub call: u64,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// To the server.
    Command(Box<Command>),
    /// From the server.
    Answer(Box<Result<Answer, Failure>>),
    /// To the server: this session's connection was closed by a kernel.
    Closed(SessionId),
    /// To the outside.
    Effect(Box<Effect>),
    /// To the outside: a notification.
    Letter(Box<Letter>),
    /// From the outside.
    Receipt(Receipt),
    /// To the object store.
    Put(Digest, Number),
    /// From the object store: whether it says that it has it.
    PutDone(bool),
}

/// What is cut, each way by itself.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// Pairs that cannot reach each other, from and to.
    pub cut: BTreeSet<(Address, Address)>,
    /// When the last message that was held up arrives.
    pub last_arrival: u64,
}

impl World {
    /// Sends a message. Nobody learns what becomes of it.
    pub(crate) fn send(&mut self, message: Message) {
        if self.healed {
            let at = self.now + self.dice.between(1, 10);
            self.schedule(at, Event::Deliver(message));
            return;
        }
        let dropped = self.network.cut.contains(&(message.from, message.to));
        if !dropped && !self.dice.per_mille(self.plan.loss) {
            self.carry(message.clone());
        }
        if !dropped && self.dice.per_mille(self.plan.repeat) {
            self.carry(message);
        }
    }

    fn carry(&mut self, message: Message) {
        let slow = self.dice.per_mille(self.plan.slow);
        let most_ms = if slow { self.plan.slow_ms } else { 30 };
        let at = self.now + self.dice.between(1, most_ms);
        self.network.last_arrival = self.network.last_arrival.max(at);
        self.schedule(at, Event::Deliver(message));
    }

    /// A fresh call id.
    pub(crate) fn new_call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// Hands a message to whom it is for.
    pub(crate) fn deliver(&mut self, message: Message) {
        match (message.to, message.body) {
            (Address::Server, body) => {
                self.server_hears(Message { body, ..message });
            }
            (Address::Worker(index), body) => self.worker_hears(index, message.call, body),
            (Address::Submitter, Body::Answer(answer)) => {
                self.submitter_hears(message.call, *answer);
            }
            (Address::Locker, Body::Answer(answer)) => self.locker_hears(message.call, *answer),
            (Address::Stranger, Body::Answer(answer)) => self.stranger_hears(message.call, &answer),
            (Address::Outside, Body::Effect(effect)) => {
                let receipt = self.outside.receive(&effect, self.now);
                self.note_receipt(&effect, receipt);
                let body = Body::Receipt(receipt);
                let (from, to) = (Address::Outside, message.from);
                self.send(Message { from, to, call: message.call, body });
            }
            (Address::Outside, Body::Letter(letter)) => {
                let receipt = self.take_letter(&letter);
                let body = Body::Receipt(receipt);
                let (from, to) = (Address::Outside, message.from);
                self.send(Message { from, to, call: message.call, body });
            }
            (Address::Blobs, Body::Put(digest, generation)) => {
                let said = self.put_blob(digest, generation);
                let body = Body::PutDone(said);
                let (from, to) = (Address::Blobs, message.from);
                self.send(Message { from, to, call: message.call, body });
            }
            // Nobody sends anything else to them.
            _ => {}
        }
    }

    /// The customer's hook takes it; or fails, before it has taken it or after.
    fn take_letter(&mut self, letter: &Letter) -> Receipt {
        let fails = !self.healed && self.dice.per_mille(self.plan.receiver_fault);
        if fails && self.dice.per_mille(500) {
            return Receipt::NotNow;
        }
        let receipt = self.outside.hear(letter, self.now);
        let id = letter.id;
        self.trace.tell(self.now, "outside", format_args!("is told {id}: {receipt:?}"));
        if fails { Receipt::NotNow } else { receipt }
    }

    /// The object store: slow it is by the network; here it fails, or fails after it succeeded.
    fn put_blob(&mut self, digest: Digest, generation: Number) -> bool {
        let fails = !self.healed && self.dice.per_mille(self.plan.blob_fault);
        if !fails || self.dice.per_mille(500) {
            self.blobs.insert((digest, generation));
        }
        !fails
    }
}
