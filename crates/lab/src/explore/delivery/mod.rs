//! The outbox: rows written with the commit, taken under a lease by either of two servers, sent,
//! settled, with a crash between any two of them; messages that come late, twice or never; a
//! receiver that drops what it has had and what is older than what it shows.

mod rule;

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::Timestamp;

use crate::sabotage::Sabotage;

use super::{
    bench::BEGIN,
    search::{Fingerprint, Model},
};

use rule::{Designed, FAILURES_ALLOWED, LEASE_MS, Outbox, Place, Row, Sent};

/// The wishes, in the order of their numbers. Both are published under one name.
const WISHES: usize = 2;
/// How often a message of each wish arrives at most.
const ARRIVALS_MAX: [u8; WISHES] = [2, 1];
const CRASHES_MAX: u8 = 1;
const REFUSALS_MAX: u8 = 2;
const PASSES_MAX: u8 = 1;

/// Where a server is with a row: its lease, and what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Hand {
    Free,
    Taken(usize, u64),
    Waiting(usize, u64),
    Heard(usize, u64, Sent),
}

#[derive(Debug, Clone)]
pub(super) struct State {
    now: Timestamp,
    /// What is decided and not durable.
    decided: Option<usize>,
    rows: BTreeMap<usize, Row>,
    hands: [Hand; 2],
    /// Messages in the air, by wish and lease, with how often each arrived.
    sent: BTreeMap<(usize, u64), u8>,
    /// What the receiver answered.
    receipts: BTreeSet<(usize, u64, Sent)>,
    /// What the receiver has had, and what it shows.
    received: BTreeSet<usize>,
    shown: Option<usize>,
    /// Under how many leases each wish was refused.
    refused: BTreeMap<usize, BTreeSet<u64>>,
    crashes: u8,
    refusals: u8,
    passes: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// A job is completed, which is decided and not durable.
    Decide(usize),
    Commit,
    /// The store dies before the commit.
    Forget,
    Take(usize, usize),
    Send(usize),
    /// A message arrives, and is taken or not.
    Arrive(usize, u64, Sent),
    Hear(usize, Sent),
    Settle(usize),
    Crash(usize),
    Pass,
}

/// The model.
pub(super) struct Delivery {
    pub(super) broken: Option<Sabotage>,
}

impl Delivery {
    fn rule(&self) -> Designed {
        Designed {
            checks_lease: self.broken != Some(Sabotage::SettledWithoutLease),
            lease_ends: self.broken != Some(Sabotage::DeliveryLeaseForEver),
        }
    }

    /// The rows that a server sees.
    fn visible(&self, state: &State) -> Vec<usize> {
        let early = self.broken == Some(Sabotage::DeliveredBeforeCommit);
        let decided = state.decided.filter(|_| early);
        state.rows.keys().copied().chain(decided).collect()
    }

    fn take(&self, state: &mut State, server: usize, wish: usize) -> Result<(), String> {
        let row = state.rows.get(&wish).cloned().unwrap_or_else(|| self.rule().write());
        let Some((row, lease)) = self.rule().take(&row, state.now) else { return Ok(()) };
        if state.decided != Some(wish) {
            state.rows.insert(wish, row);
        }
        state.hands[server] = Hand::Taken(wish, lease);
        if self.broken == Some(Sabotage::SettledBeforeSent) {
            self.settle(state, wish, lease, Sent::Delivered)?;
        }
        Ok(())
    }

    fn settle(&self, state: &mut State, wish: usize, lease: u64, sent: Sent) -> Result<(), String> {
        let Some(row) = state.rows.get(&wish) else { return Ok(()) };
        let before = self.rule().place(row);
        if let Some(row) = self.rule().settle(row, lease, sent) {
            let after = self.rule().place(&row);
            state.rows.insert(wish, row);
            if before != Place::Waiting && after != before {
                return Err(format!("wish {wish} was {before:?}, and is {after:?}"));
            }
        }
        Ok(())
    }

    fn arrive(state: &mut State, wish: usize, lease: u64, sent: Sent) -> Result<(), String> {
        *state.sent.entry((wish, lease)).or_default() += 1;
        state.receipts.insert((wish, lease, sent));
        if sent == Sent::Failed {
            state.refusals += 1;
            state.refused.entry(wish).or_default().insert(lease);
            return Ok(());
        }
        // It drops what it has had by its id, and what is older than what it shows by its number.
        if state.received.insert(wish) && Some(wish) > state.shown {
            state.shown = Some(wish);
        }
        if state.rows.contains_key(&wish) {
            return Ok(());
        }
        Err(format!("wish {wish} is delivered, and was never committed"))
    }
}

impl Model for Delivery {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        State {
            now: BEGIN,
            decided: None,
            rows: BTreeMap::new(),
            hands: [Hand::Free; 2],
            sent: BTreeMap::new(),
            receipts: BTreeSet::new(),
            received: BTreeSet::new(),
            shown: None,
            refused: BTreeMap::new(),
            crashes: 0,
            refusals: 0,
            passes: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        if state.decided.is_some() {
            actions.extend([Action::Commit, Action::Forget]);
        } else {
            let next = state.rows.len();
            actions.extend((next < WISHES).then_some(Action::Decide(next)));
        }
        for (server, hand) in state.hands.iter().enumerate() {
            match *hand {
                Hand::Free => {
                    let visible = self.visible(state).into_iter();
                    actions.extend(visible.map(|wish| Action::Take(server, wish)));
                }
                Hand::Taken(..) => actions.push(Action::Send(server)),
                Hand::Waiting(wish, lease) => {
                    let told = [Sent::Delivered, Sent::Failed].into_iter();
                    let told = told.filter(|sent| state.receipts.contains(&(wish, lease, *sent)));
                    actions.extend(told.map(|sent| Action::Hear(server, sent)));
                }
                Hand::Heard(..) => actions.push(Action::Settle(server)),
            }
            if *hand != Hand::Free && state.crashes < CRASHES_MAX {
                actions.push(Action::Crash(server));
            }
        }
        for ((wish, lease), arrived) in &state.sent {
            if *arrived < ARRIVALS_MAX[*wish] {
                actions.push(Action::Arrive(*wish, *lease, Sent::Delivered));
                if *wish == 0 && state.refusals < REFUSALS_MAX {
                    actions.push(Action::Arrive(*wish, *lease, Sent::Failed));
                }
            }
        }
        // Leases of the dead end; time goes on for as long as somebody waits for that.
        let waits = state.rows.values().any(|row| self.rule().place(row) == Place::Waiting);
        if waits && state.passes < PASSES_MAX {
            actions.push(Action::Pass);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Decide(wish) => state.decided = Some(wish),
            Action::Commit => {
                if let Some(wish) = state.decided.take() {
                    state.rows.insert(wish, self.rule().write());
                }
            }
            Action::Forget => state.decided = None,
            Action::Take(server, wish) => self.take(&mut state, server, wish)?,
            Action::Send(server) => {
                if let Hand::Taken(wish, lease) = state.hands[server] {
                    state.sent.entry((wish, lease)).or_default();
                    state.hands[server] = Hand::Waiting(wish, lease);
                }
            }
            Action::Arrive(wish, lease, sent) => Self::arrive(&mut state, wish, lease, sent)?,
            Action::Hear(server, sent) => {
                if let Hand::Waiting(wish, lease) = state.hands[server] {
                    state.hands[server] = Hand::Heard(wish, lease, sent);
                }
            }
            Action::Settle(server) => {
                if let Hand::Heard(wish, lease, sent) = state.hands[server] {
                    self.settle(&mut state, wish, lease, sent)?;
                }
                state.hands[server] = Hand::Free;
            }
            Action::Crash(server) => {
                state.crashes += 1;
                state.hands[server] = Hand::Free;
            }
            Action::Pass => {
                state.passes += 1;
                state.now = state.now.plus_ms(LEASE_MS);
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        into.take(&(state.now, state.decided, &state.rows, state.hands, &state.sent));
        into.take(&(&state.receipts, &state.received, state.shown, &state.refused));
        into.take(&(state.crashes, state.refusals, state.passes));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        for (wish, row) in &state.rows {
            let refused = state.refused.get(wish).map_or(0, BTreeSet::len);
            match self.rule().place(row) {
                Place::Delivered if !state.received.contains(wish) => {
                    return Some(format!("wish {wish} is settled, and nobody has received it"));
                }
                Place::Dead if refused < usize::from(FAILURES_ALLOWED) => {
                    return Some(format!("wish {wish} is given up after {refused} refusal(s)"));
                }
                Place::Waiting | Place::Delivered | Place::Dead => {}
            }
        }
        let newest = state.received.last();
        (state.shown.as_ref() != newest).then(|| "the name shows an older wish".to_owned())
    }

    /// Whatever was committed is delivered in the end, or a person has to look.
    fn stuck(&self, state: &State) -> Option<String> {
        let still = |row: &&Row| self.rule().place(row) == Place::Waiting;
        let waiting = state.rows.values().filter(still).count();
        // Where the world's own end keeps a lease from running out, nothing is shown.
        let dead_hold_it =
            state.passes >= PASSES_MAX && state.crashes > 0 && self.rule().lease_ends;
        let lost = state.hands.iter().any(|hand| matches!(hand, Hand::Waiting(..)));
        (waiting > 0 && !dead_hold_it && !lost)
            .then(|| "a committed effect is never delivered".to_owned())
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        match *action {
            Action::Decide(wish) => format!("wish {wish}'s job is completed, not durably yet"),
            Action::Commit => "the completion is durable, and the row with it".to_owned(),
            Action::Forget => "the store dies before the commit".to_owned(),
            Action::Take(server, wish) => format!("server {server} takes wish {wish}'s row"),
            Action::Send(server) => format!("server {server} sends it"),
            Action::Arrive(wish, lease, Sent::Delivered) => {
                format!("wish {wish}'s message of lease {lease} arrives")
            }
            Action::Arrive(wish, lease, Sent::Failed) => {
                format!("wish {wish}'s message of lease {lease} arrives, and is not taken")
            }
            Action::Hear(server, sent) => format!("server {server} hears: {sent:?}"),
            Action::Settle(server) => format!("server {server} settles the row"),
            Action::Crash(server) => format!("server {server} crashes, and starts"),
            Action::Pass => "every lease of a row runs out".to_owned(),
        }
    }
}
