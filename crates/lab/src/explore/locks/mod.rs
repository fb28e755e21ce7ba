//! One lock and three who want it, over the real operations: waiters that come, leave, fall silent
//! or wish no longer; a grant whose waiter leaves while it is committed; leases that run out;
//! requests that come late or twice; a server that restarts.
//!
//! What must hold is told from outside, by what people asked for and were answered
//! ([`checks`]): nothing here looks at how the rule keeps its queue.

mod checks;

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    LeaseId, LockName, Number, Refusal, Timestamp,
    lease::{Lease, Pair},
    lock::{Acquire, Acquired, Lock},
};
use palisade_store::{
    Failure,
    command::{AcquireLock, Answer, Command, LeaveLock, ReleaseLock, RenewLock},
};

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
};

use super::{
    bench::{self, TTL_MS},
    search::{Fingerprint, Model},
};

use checks::Outsiders;

/// One step of time, in ms: a lease runs out in two of them.
const STEP_MS: u64 = TTL_MS * 6 / 10;
const STEPS_MAX: u8 = 3;
/// How long each would wait, in ms: one of them not for long.
const WAIT_MS: [u64; 3] = [100 * STEP_MS, 100 * STEP_MS, STEP_MS / 2];
/// How long each counts as being there, in ms: one of them falls silent.
const ALIVE_MS: [u64; 3] = [100 * STEP_MS, STEP_MS / 2, 100 * STEP_MS];
const NAMES: [&str; 3] = ["A", "B", "C"];

/// A message to the server, which may be served twice, late, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    Acquire(usize),
    Renew(usize, Pair),
    Release(usize, Pair),
    /// The server saw the waiter's connection break.
    Leave(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Idle,
    Asking,
    Holding(Pair),
    Gone,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    now: Timestamp,
    people: [At; 3],
    /// What is in the air, with how often it was served.
    sent: BTreeMap<Request, u8>,
    /// Grants that were answered, on their way.
    replies: BTreeSet<(usize, Pair)>,
    outsiders: Outsiders,
    passes: u8,
    /// Whether the server has ticked since time passed last: twice in an instant is once.
    ticked: bool,
    crashes: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Ask(usize),
    GiveUp(usize),
    Renew(usize),
    Release(usize),
    Serve(Request),
    Receive(usize, Pair),
    Tick,
    Pass,
    Restart,
}

/// The model.
pub(super) struct Locks {
    pub(super) broken: Option<Sabotage>,
}

fn name() -> LockName {
    "studio".parse().expect("a fine name")
}

fn request_id(person: usize) -> palisade_core::RequestId {
    format!("a{person}").parse().expect("a fine id")
}

fn lease_id(person: usize) -> LeaseId {
    LeaseId(100 + person as u128)
}

fn lock_of(engine: &CrashEngine) -> Lock {
    engine.live.locks.get(&name()).map_or_else(|| Lock::new(name()), |lock| Lock::clone(lock))
}

fn command(request: Request) -> Command {
    match request {
        Request::Acquire(person) => Command::AcquireLock(AcquireLock {
            name: name(),
            wish: Acquire {
                holder: format!("holder-{person}").parse().expect("a fine name"),
                ttl_ms: TTL_MS,
                wait_ms: WAIT_MS[person],
                request_id: request_id(person),
                lease_id: lease_id(person),
                alive_ms: ALIVE_MS[person],
            },
        }),
        Request::Renew(_, pair) => Command::RenewLock(RenewLock { name: name(), pair }),
        Request::Release(_, pair) => Command::ReleaseLock(ReleaseLock { name: name(), pair }),
        Request::Leave(person) => {
            let (request_id, call) = (request_id(person), lease_id(person));
            Command::LeaveLock(LeaveLock { name: name(), request_id, call })
        }
    }
}

impl State {
    fn serve(&mut self, request: Request) -> Result<(), String> {
        *self.sent.entry(request).or_default() += 1;
        let before = lock_of(&self.engine);
        let answer = self.engine.apply(&command(request), self.now);
        self.engine.commit();
        self.engine.forget_journal();
        self.outsiders.asked(request, self.now);
        self.look(&before, Some(request))?;
        self.hear(&before, request, answer)
    }

    /// What changed must be what somebody could expect.
    fn look(&mut self, before: &Lock, request: Option<Request>) -> Result<(), String> {
        let after = lock_of(&self.engine);
        self.outsiders.saw(before, &after, request, self.now)
    }

    fn hear(
        &mut self,
        before: &Lock,
        request: Request,
        answer: Result<Answer, Failure>,
    ) -> Result<(), String> {
        let open = |pair: Pair| {
            let held = before.holding.as_ref();
            held.is_some_and(|held| held.token == pair.token && held.lease_id == pair.lease_id)
        };
        match (request, answer) {
            (Request::Acquire(person), Ok(Answer::AcquireLock(Acquired::Granted(held)))) => {
                let pair = Pair { token: held.token, lease_id: held.lease_id };
                if self.people[person] == At::Asking {
                    self.replies.insert((person, pair));
                }
                self.outsiders.promised(pair, self.now);
                Ok(())
            }
            (Request::Renew(_, pair), Ok(Answer::RenewLock(Lease { .. }))) => {
                if !open(pair) {
                    return Err(format!("token {} was closed, and is renewed", pair.token));
                }
                self.outsiders.promised(pair, self.now);
                Ok(())
            }
            (Request::Renew(_, pair) | Request::Release(_, pair), Err(Failure::Refused(_))) => {
                let told = format!("token {} is open, and told that it is lost", pair.token);
                if open(pair) { Err(told) } else { Ok(()) }
            }
            // A request is granted once: its late duplicate is told that the grant is over.
            (Request::Acquire(person), Err(Failure::Refused(Refusal::LeaseLost { .. }))) => {
                let told = format!("{} is told that its grant is over", NAMES[person]);
                if self.outsiders.is_over(person) { Ok(()) } else { Err(told) }
            }
            (Request::Acquire(_) | Request::Release(..) | Request::Leave(_), Ok(_)) => Ok(()),
            (_, other) => Err(format!("{request:?} is answered {other:?}")),
        }
    }
}

impl Model for Locks {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        State {
            engine: bench::engine(self.broken),
            now: bench::BEGIN,
            people: [At::Idle; 3],
            sent: BTreeMap::new(),
            replies: BTreeSet::new(),
            outsiders: Outsiders::default(),
            passes: 0,
            ticked: true,
            crashes: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (person, at) in state.people.iter().enumerate() {
            match at {
                At::Idle => actions.push(Action::Ask(person)),
                At::Asking if person == 1 => actions.push(Action::GiveUp(person)),
                // The last of them never releases: it is as good as dead.
                At::Holding(pair) if person < 2 => {
                    if person == 0 && !state.sent.contains_key(&Request::Renew(person, *pair)) {
                        actions.push(Action::Renew(person));
                    }
                    actions.push(Action::Release(person));
                }
                At::Asking | At::Holding(_) | At::Gone => {}
            }
        }
        // The first of them alone asks again.
        let often = |request: &Request| match request {
            Request::Acquire(0) => 2,
            _ => 1,
        };
        let waiting = state.sent.iter().filter(|(request, served)| **served < often(request));
        actions.extend(waiting.map(|(request, _)| Action::Serve(*request)));
        let asking = |person: &usize| state.people[*person] == At::Asking;
        let awaited = state.replies.iter().filter(|(person, _)| asking(person));
        actions.extend(awaited.map(|(person, pair)| Action::Receive(*person, *pair)));
        if state.passes < STEPS_MAX {
            actions.push(Action::Pass);
        }
        if !state.ticked {
            actions.push(Action::Tick);
        }
        if state.crashes == 0 && state.passes == 1 {
            actions.push(Action::Restart);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Ask(person) => {
                state.people[person] = At::Asking;
                state.sent.insert(Request::Acquire(person), 0);
            }
            Action::GiveUp(person) => {
                state.people[person] = At::Gone;
                state.replies.retain(|(waiting, _)| *waiting != person);
                state.sent.insert(Request::Leave(person), 0);
            }
            Action::Renew(person) | Action::Release(person) => {
                let At::Holding(pair) = state.people[person] else { return Ok(state) };
                let request = match action {
                    Action::Renew(_) => Request::Renew(person, pair),
                    _ => Request::Release(person, pair),
                };
                if matches!(action, Action::Release(_)) {
                    state.people[person] = At::Gone;
                }
                state.sent.insert(request, 0);
            }
            Action::Serve(request) => state.serve(request)?,
            Action::Receive(person, pair) => {
                state.replies.remove(&(person, pair));
                state.people[person] = At::Holding(pair);
            }
            Action::Tick => {
                let before = lock_of(&state.engine);
                // A tick is never refused, and what it gives up concerns nobody here.
                let _ = state.engine.apply(&Command::Tick, state.now);
                state.engine.commit();
                state.engine.forget_journal();
                state.look(&before, None)?;
                state.outsiders.ticked(&lock_of(&state.engine), state.now)?;
                state.ticked = true;
            }
            Action::Pass => {
                state.passes += 1;
                state.ticked = false;
                state.now = state.now.plus_ms(STEP_MS);
                state.outsiders.time_passes(state.now);
            }
            Action::Restart => {
                state.crashes += 1;
                state.engine.crash();
                state.engine.start(state.now);
                state.outsiders.restarted();
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        into.take(&(state.now, state.people, &state.sent, &state.replies));
        into.take(&(&state.outsiders, state.passes, state.ticked, state.crashes));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        let kept = |token: Number| state.engine.live.lock_grants.contains_key(&token);
        let lost = state.outsiders.told().find(|token| !kept(*token));
        lost.map(|token| format!("token {token} was answered, and is not recorded"))
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        match *action {
            Action::Ask(person) => format!("{} asks for the lock", NAMES[person]),
            Action::GiveUp(person) => format!("{} waits no longer", NAMES[person]),
            Action::Renew(person) => format!("{} sends a renewal", NAMES[person]),
            Action::Release(person) => format!("{} sends a release", NAMES[person]),
            Action::Serve(Request::Acquire(person)) => {
                format!("the server takes {}'s wish", NAMES[person])
            }
            Action::Serve(Request::Renew(person, _)) => {
                format!("the server takes {}'s renewal", NAMES[person])
            }
            Action::Serve(Request::Release(person, _)) => {
                format!("the server takes {}'s release", NAMES[person])
            }
            Action::Serve(Request::Leave(person)) => {
                format!("the server hears that {} is gone", NAMES[person])
            }
            Action::Receive(person, pair) => {
                format!("{} hears of its grant, token {}", NAMES[person], pair.token)
            }
            Action::Tick => "the server ticks".to_owned(),
            Action::Pass => format!("{STEP_MS} ms pass"),
            Action::Restart => "the server crashes, and starts".to_owned(),
        }
    }
}
