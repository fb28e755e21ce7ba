//! The outbox, by the store's own operations: rows written with the move that they tell of, taken
//! under a lease by either of two servers, sent, settled, with a crash between any two of them;
//! messages that come late, twice or never; a receiver that drops what it has had.

mod moves;
mod receiver;

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    LeaseId, Number, Timestamp,
    outbox::{Delivery as Row, EndpointId, EventId, Standing, TRIES_MAX, Tried},
};
use palisade_store::{
    command::{Command, SettleDelivery},
    tables::OutboxTables,
};

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
};

use super::{
    bench::{self, BEGIN},
    search::{Fingerprint, Model},
};

use moves::{Move, decide};
use receiver::Receiver;

/// How many messages arrive a second time.
const REPEATS_MAX: u8 = 1;
/// Two of one job, or one of each of two.
const MOVES_MAX: usize = 2;
const CRASHES_MAX: u8 = 1;
const FORGETS_MAX: u8 = 1;
const REFUSALS_MAX: u8 = 2;
const PASSES_MAX: u8 = 2;

/// How a send went, as the receiver said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Sent {
    /// It has it, now or before, or has something newer.
    Taken,
    /// It would not take it.
    Refused,
}

/// A row under a lease.
type Try = (Number, LeaseId);

/// Where a server is with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Hand {
    Free,
    Leased(Try),
    Waiting(Try),
    Heard(Try, Sent),
}

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    now: Timestamp,
    /// What is durable, in order, and what is decided beyond it.
    moves: Vec<Move>,
    decided: Option<Move>,
    hands: [Hand; 2],
    /// Messages, and whether each has arrived.
    sent: BTreeMap<Try, bool>,
    /// What the receiver answered those who still listen.
    receipts: BTreeSet<(Try, Sent)>,
    receiver: Receiver,
    crashes: u8,
    forgets: u8,
    refusals: u8,
    repeats: u8,
    passes: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// A job moves, which is decided and not durable.
    Decide(Move),
    Commit,
    /// The store dies before the commit.
    Forget,
    Lease(usize),
    Send(usize),
    /// A message arrives, and is taken or not.
    Arrive(Try, Sent),
    Hear(usize, Sent),
    Settle(usize),
    Crash(usize),
    Pass,
}

/// The model.
pub(super) struct Delivery {
    pub(super) broken: Option<Sabotage>,
}

fn row(engine: &CrashEngine, number: Number) -> Option<&Row> {
    engine.live.outbox.get(&number).map(|row| &**row)
}

impl Delivery {
    fn lease(&self, state: &mut State, server: usize) -> Result<(), String> {
        let leased = bench::lease_one(&mut state.engine, state.now);
        if state.decided.is_none() {
            state.engine.commit();
        }
        state.engine.forget_journal();
        let Some(leased) = leased else { return Ok(()) };
        let (number, lease_id) = (leased.delivery.number, leased.lease_id);
        state.hands[server] = Hand::Leased((number, lease_id));
        if self.broken == Some(Sabotage::SettledBeforeSent) {
            state.settle((number, lease_id), Sent::Taken)?;
        }
        Ok(())
    }
}

impl State {
    fn settle(&mut self, (number, lease_id): Try, sent: Sent) -> Result<(), String> {
        let before = row(&self.engine, number).map(|row| row.standing);
        let endpoint = EndpointId(1);
        let tried = match sent {
            Sent::Taken => Tried::Taken,
            Sent::Refused => Tried::Failed {
                status: Some(503),
                error: "503 Service Unavailable".to_owned(),
                retry_after_ms: None,
                gone: false,
            },
        };
        let id = EventId { endpoint, number };
        let settle = SettleDelivery { id, lease_id, tried, chance: 0 };
        let answer = self.engine.apply(&Command::SettleDelivery(settle), self.now);
        self.engine.commit();
        self.engine.forget_journal();
        answer.map_err(|failure| format!("a settlement is answered {failure}"))?;
        let after = row(&self.engine, number).map(|row| row.standing);
        if before != after && before != Some(Standing::Leased(lease_id)) {
            return Err(format!("row {number} is settled under a lease that is not its own"));
        }
        Ok(())
    }

    fn arrive(&mut self, message: Try, sent: Sent) -> Result<(), String> {
        if self.sent.insert(message, true) == Some(true) {
            self.repeats += 1;
        }
        if self.hands.contains(&Hand::Waiting(message)) {
            self.receipts.insert((message, sent));
        }
        match sent {
            Sent::Refused => self.refusals += 1,
            Sent::Taken => self.receiver.takes(message.0, &self.engine)?,
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), String> {
        self.engine.commit();
        self.engine.forget_journal();
        self.moves.extend(self.decided.take());
        // Each move has one wish to tell, at one endpoint.
        if self.engine.durable.outbox.len() == self.moves.len() {
            return Ok(());
        }
        Err("a move is durable, and what it has to tell is not".to_owned())
    }

    /// When something becomes due by the mere passing of time.
    fn next_at(&self) -> Option<Timestamp> {
        self.engine.clone().next_delivery(self.now).ok().flatten()
    }

    fn is_open(&self) -> bool {
        self.engine.live.outbox.values().any(|row| row.is_open())
    }
}

impl Model for Delivery {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        bench::present(&mut engine, bench::content_of(0));
        bench::endpoint(&mut engine);
        engine.forget_journal();
        State {
            engine,
            now: BEGIN,
            moves: Vec::new(),
            decided: None,
            hands: [Hand::Free; 2],
            sent: BTreeMap::new(),
            receipts: BTreeSet::new(),
            receiver: Receiver::default(),
            crashes: 0,
            forgets: 0,
            refusals: 0,
            repeats: 0,
            passes: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        if state.decided.is_some() {
            actions.push(Action::Commit);
            let may_forget = state.forgets < FORGETS_MAX && state.moves.is_empty();
            actions.extend(may_forget.then_some(Action::Forget));
        } else {
            let done = |what| state.moves.contains(&what);
            let next = if done(Move::Fails) { Move::Completes } else { Move::Fails };
            let open = [next, Move::Other].into_iter().filter(|what| !done(*what));
            let open = open.filter(|_| state.moves.len() < MOVES_MAX);
            actions.extend(open.map(Action::Decide));
        }
        // What is decided and not durable, and a lease or a settlement after it, are one
        // transaction: the commit comes first.
        let early = self.broken == Some(Sabotage::DeliveredBeforeCommit);
        let may_lease = state.is_open() && (state.decided.is_none() || early);
        for (server, hand) in state.hands.iter().enumerate() {
            match *hand {
                Hand::Free if may_lease => actions.push(Action::Lease(server)),
                Hand::Leased(_) => actions.push(Action::Send(server)),
                Hand::Waiting(message) => {
                    let told = [Sent::Taken, Sent::Refused].into_iter();
                    let told = told.filter(|sent| state.receipts.contains(&(message, *sent)));
                    actions.extend(told.map(|sent| Action::Hear(server, sent)));
                }
                Hand::Heard(..) if state.decided.is_none() => actions.push(Action::Settle(server)),
                Hand::Free | Hand::Heard(..) => {}
            }
            // A crash after the answer was heard is one before it was.
            let is_at_risk = matches!(hand, Hand::Leased(_) | Hand::Waiting(_));
            if is_at_risk && state.crashes < CRASHES_MAX {
                actions.push(Action::Crash(server));
            }
        }
        for (message, arrived) in &state.sent {
            if !arrived || state.repeats < REPEATS_MAX {
                actions.push(Action::Arrive(*message, Sent::Taken));
                if state.refusals < REFUSALS_MAX {
                    actions.push(Action::Arrive(*message, Sent::Refused));
                }
            }
        }
        if state.passes < PASSES_MAX && state.is_open() {
            actions.push(Action::Pass);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Decide(what) => {
                decide(&mut state.engine, what, state.now);
                state.decided = Some(what);
            }
            Action::Commit => state.commit()?,
            Action::Forget => {
                state.forgets += 1;
                state.decided = None;
                state.engine.crash();
                state.engine.start(state.now);
            }
            Action::Lease(server) => self.lease(&mut state, server)?,
            Action::Send(server) => {
                if let Hand::Leased(message) = state.hands[server] {
                    state.sent.entry(message).or_default();
                    state.hands[server] = Hand::Waiting(message);
                }
            }
            Action::Arrive(message, sent) => state.arrive(message, sent)?,
            Action::Hear(server, sent) => {
                if let Hand::Waiting(message) = state.hands[server] {
                    state.hands[server] = Hand::Heard(message, sent);
                    state.receipts.retain(|(answered, _)| *answered != message);
                }
            }
            Action::Settle(server) => {
                if let Hand::Heard(message, sent) = state.hands[server] {
                    state.settle(message, sent)?;
                }
                state.hands[server] = Hand::Free;
            }
            Action::Crash(server) => {
                state.crashes += 1;
                if let Hand::Waiting(message) = state.hands[server] {
                    state.receipts.retain(|(answered, _)| *answered != message);
                }
                state.hands[server] = Hand::Free;
            }
            Action::Pass => {
                state.passes += 1;
                state.now = state.next_at().unwrap_or(state.now);
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        // Which server is which does not matter.
        let mut hands = state.hands;
        hands.sort_unstable();
        into.take(&(state.now, &state.moves, state.decided, hands, &state.sent));
        into.take(&(&state.receipts, &state.receiver));
        into.take(&(state.crashes, state.forgets, state.refusals, state.repeats, state.passes));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        for row in state.engine.live.outbox.values() {
            let number = row.number;
            match row.standing {
                Standing::Delivered if !state.receiver.has(number) => {
                    return Some(format!("row {number} is settled, and nobody has received it"));
                }
                Standing::Dead if row.tries < TRIES_MAX => {
                    return Some(format!("row {number} is given up after {} tries", row.tries));
                }
                _ => {}
            }
        }
        None
    }

    /// Whatever was committed is tried until it is delivered, or a person has to look.
    fn stuck(&self, state: &State) -> Option<String> {
        let mut later = state.clone();
        for _ in 0..TRIES_MAX * 3 {
            bench::lease_one(&mut later.engine, later.now);
            later.now = later.next_at().unwrap_or(later.now);
        }
        if later.is_open() {
            return Some("a committed effect is never delivered".to_owned());
        }
        state.receiver.wrong_in_the_end(&state.engine)
    }

    fn tell(&self, state: &State, action: &Action) -> String {
        let hand = |server: usize| match state.hands[server] {
            Hand::Free => "nothing".to_owned(),
            Hand::Leased((row, _)) | Hand::Waiting((row, _)) | Hand::Heard((row, _), _) => {
                format!("row {row}")
            }
        };
        match *action {
            Action::Decide(Move::Fails) => "a job fails for good, not durably yet".to_owned(),
            Action::Decide(Move::Completes) => "it is tried again, and completed".to_owned(),
            Action::Decide(Move::Other) => "another job is completed, not durably yet".to_owned(),
            Action::Commit => "that is durable".to_owned(),
            Action::Forget => "the store dies before the commit, and starts".to_owned(),
            Action::Lease(server) => format!("server {server} asks for what is to be told"),
            Action::Send(server) => format!("server {server} sends {}", hand(server)),
            Action::Arrive((row, _), Sent::Taken) => format!("row {row} arrives"),
            Action::Arrive((row, _), Sent::Refused) => {
                format!("row {row} arrives, and is not taken")
            }
            Action::Hear(server, sent) => {
                format!("server {server} hears of {}: {sent:?}", hand(server))
            }
            Action::Settle(server) => format!("server {server} settles {}", hand(server)),
            Action::Crash(server) => {
                format!("server {server} crashes with {}, and starts", hand(server))
            }
            Action::Pass => "time passes until something is due".to_owned(),
        }
    }
}
