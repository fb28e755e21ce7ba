//! The fenced register over a store with compare-and-swap and no server between: the real call,
//! loop and rule, with writers that pause between the read and the swap, swaps whose outcome is
//! unknown and that land later, and stores that fail.

mod cast;
mod script;

use bytes::Bytes;
use palisade_artefacts::register::{Done, Key, Record, RegisterError, Request};

use crate::sabotage::Sabotage;

use super::search::{Fingerprint, Model};

use cast::Scene;
use script::{Call, Question, Said};

/// How many swaps have an unknown outcome.
const UNKNOWNS_MAX: u8 = 3;
/// How often the store fails and says so.
const FAILURES_MAX: u8 = 1;
/// How often a call is made again after its outcome was unknown.
const AGAIN_MAX: u8 = 1;

/// What a call was told at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Told {
    Done,
    NothingDone,
    Refused,
    Unknown,
}

/// A call, by who makes it, which of its requests, and how often it was made before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct CallId {
    writer: usize,
    request: usize,
    again: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Writer {
    call: CallId,
    said: Vec<Said>,
    /// What each call that is over was told.
    told: Vec<(CallId, Told)>,
}

/// A swap whose outcome nobody knows, on its way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Flying {
    call: CallId,
    expected: Option<Bytes>,
    bytes: Bytes,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    /// None until it is decided who plays.
    scene: Option<Scene>,
    cell: Option<Bytes>,
    writers: Vec<Writer>,
    flying: Vec<Flying>,
    /// Every record that was ever in the cell, by which call.
    landed: Vec<(CallId, Bytes)>,
    unknowns: u8,
    failures: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Begin(Scene),
    /// The store answers a writer, as it should.
    Answer(usize),
    /// The store fails, and says so.
    Fail(usize),
    /// The swap is done, or may be later, and nobody is told which.
    Lose(usize, bool),
    /// A swap that was on its way arrives.
    Arrive(usize),
}

/// The model.
pub(super) struct Registers {
    pub(super) broken: Option<Sabotage>,
}

fn key() -> Key {
    "films/main".parse().expect("a fine name")
}

fn record(bytes: &Bytes) -> Record {
    Record::decode(&key(), bytes).expect("the register wrote it")
}

impl Registers {
    fn nonce(&self, call: CallId) -> u128 {
        if self.broken == Some(Sabotage::NonceDropped) {
            return 7;
        }
        1 + call.writer as u128 * 100 + call.request as u128 * 10 + u128::from(call.again)
    }

    /// What a writer is at. None: it has nothing more to do.
    fn call(&self, state: &State, writer: usize) -> Option<(Request, Call)> {
        let at = &state.writers[writer];
        let request = state.scene?.requests(writer).into_iter().nth(at.call.request)?;
        let call = script::run(&key(), &request, self.nonce(at.call), &at.said);
        Some((request, call))
    }

    fn question(&self, state: &State, writer: usize) -> Option<Question> {
        match self.call(state, writer)? {
            (_, Call::Asks(question)) => Some(question),
            (_, Call::Over(_)) => None,
        }
    }

    /// The swap arrives at the store. Answers whether it was done.
    fn land(&self, state: &mut State, flying: Flying) -> Result<bool, String> {
        let unconditional = self.broken == Some(Sabotage::SwappedUnconditionally);
        if state.cell != flying.expected && !unconditional {
            return Ok(false);
        }
        let Flying { call, bytes, .. } = flying;
        let scene = state.scene.expect("somebody plays");
        let request = &scene.requests(call.writer)[call.request];
        let told = state.writers[call.writer].told.iter().find(|(told, _)| *told == call);
        if let Some((_, told @ (Told::NothingDone | Told::Refused))) = told {
            return Err(format!("a change lands after its writer was told {told:?}"));
        }
        let (old, new) = (state.cell.as_ref().map(record), record(&bytes));
        let theirs = old.as_ref().is_some_and(|old| {
            old.author.is_some() && old.fence == new.fence && old.author != new.author
        });
        if theirs && !scene.resets() {
            return Err("a number is taken from one who did not bring it".to_owned());
        }
        let fence_before = old.map(|old| old.fence);
        if !matches!(request, Request::Reset { .. }) && fence_before > Some(new.fence) {
            return Err("the fence falls".to_owned());
        }
        if state.landed.iter().any(|(_, landed)| *landed == bytes) {
            return Err("the same bytes are in the register again".to_owned());
        }
        let writes = matches!(request, Request::Write { .. });
        let same =
            |(other, _): &(CallId, Bytes)| scene.requests(other.writer)[other.request] == *request;
        if writes && !scene.resets() && state.landed.iter().any(same) {
            return Err("one write is done twice".to_owned());
        }
        state.landed.push((call, bytes.clone()));
        state.cell = Some(bytes);
        Ok(true)
    }

    /// The store says something to a writer; a call that is over is looked at.
    fn say(&self, state: &mut State, writer: usize, said: Said) -> Result<(), String> {
        state.writers[writer].said.push(said);
        let Some((request, Call::Over(over))) = self.call(state, writer) else { return Ok(()) };
        let told = check(state, writer, &request, &over)?;
        let writer = &mut state.writers[writer];
        writer.told.push((writer.call, told));
        writer.said.clear();
        match told {
            Told::Unknown if writer.call.again < AGAIN_MAX => writer.call.again += 1,
            Told::Done => {
                writer.call.request += 1;
                writer.call.again = 0;
            }
            // Refused, or tired of it: it does nothing more.
            Told::Refused | Told::NothingDone | Told::Unknown => writer.call.request = usize::MAX,
        }
        Ok(())
    }

    fn answer(&self, state: &mut State, writer: usize) -> Result<(), String> {
        let said = match self.question(state, writer) {
            None => return Ok(()),
            Some(Question::Read) => Said::Cell(state.cell.clone()),
            Some(Question::Swap { expected, bytes }) => {
                let call = state.writers[writer].call;
                let done = self.land(state, Flying { call, expected, bytes })?;
                if done { Said::Swapped } else { Said::Conflict }
            }
        };
        self.say(state, writer, said)
    }

    fn lose(&self, state: &mut State, writer: usize, later: bool) -> Result<(), String> {
        let Some(Question::Swap { expected, bytes }) = self.question(state, writer) else {
            return Ok(());
        };
        state.unknowns += 1;
        let call = state.writers[writer].call;
        let flying = Flying { call, expected, bytes };
        if later {
            state.flying.push(flying);
            state.flying.sort();
        } else {
            self.land(state, flying)?;
        }
        let treated_as_failure = self.broken == Some(Sabotage::UnknownIsFailure);
        self.say(state, writer, if treated_as_failure { Said::NotDone } else { Said::Unknown })
    }
}

/// What a call was told, if it may be told that.
fn check(
    state: &State,
    writer: usize,
    request: &Request,
    over: &Result<Done, RegisterError>,
) -> Result<Told, String> {
    let call = state.writers[writer].call;
    let landed = state.landed.iter().any(|(by, _)| *by == call);
    match over {
        Ok(done) => {
            let bytes = done.record.encode();
            let stood = state.landed.iter().any(|(_, landed)| *landed == bytes);
            if !stood || !cast::is_in(request, &done.record) {
                return Err("a change was acknowledged, and never stood".to_owned());
            }
            Ok(Told::Done)
        }
        Err(RegisterError::Unavailable { .. } | RegisterError::Contended { .. }) => {
            let done = "a change was done, and its writer was told that nothing was".to_owned();
            if landed { Err(done) } else { Ok(Told::NothingDone) }
        }
        Err(RegisterError::Refused { .. }) => Ok(Told::Refused),
        Err(RegisterError::Unknown { .. }) => Ok(Told::Unknown),
        Err(RegisterError::Corrupt { found, .. }) => Err(format!("it is corrupt: {found}")),
    }
}

impl Model for Registers {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        State {
            scene: None,
            cell: None,
            writers: Vec::new(),
            flying: Vec::new(),
            landed: Vec::new(),
            unknowns: 0,
            failures: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        if state.scene.is_none() {
            return Scene::ALL.map(Action::Begin).to_vec();
        }
        let mut actions: Vec<_> = (0..state.flying.len()).map(Action::Arrive).collect();
        for writer in 0..state.writers.len() {
            let Some(question) = self.question(state, writer) else { continue };
            actions.push(Action::Answer(writer));
            if state.failures < FAILURES_MAX {
                actions.push(Action::Fail(writer));
            }
            if matches!(question, Question::Swap { .. }) && state.unknowns < UNKNOWNS_MAX {
                actions.extend([Action::Lose(writer, false), Action::Lose(writer, true)]);
            }
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Begin(scene) => {
                let writer = |writer| Writer {
                    call: CallId { writer, request: 0, again: 0 },
                    said: Vec::new(),
                    told: Vec::new(),
                };
                state.writers = (0..scene.writers()).map(writer).collect();
                state.cell = scene.cell(&key());
                state.scene = Some(scene);
            }
            Action::Answer(writer) => self.answer(&mut state, writer)?,
            Action::Fail(writer) => {
                let reads = self.question(&state, writer) == Some(Question::Read);
                state.failures += 1;
                let said = if reads { Said::Unreadable } else { Said::NotDone };
                self.say(&mut state, writer, said)?;
            }
            Action::Lose(writer, later) => self.lose(&mut state, writer, later)?,
            Action::Arrive(index) => {
                let flying = state.flying.remove(index);
                self.land(&mut state, flying)?;
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        into.take(&(state.scene, &state.cell, &state.writers, &state.flying));
        into.take(&(&state.landed, state.unknowns, state.failures));
    }

    fn wrong(&self, _state: &State) -> Option<String> {
        None
    }

    /// What stands is not older than anything that was acknowledged.
    fn stuck(&self, state: &State) -> Option<String> {
        let scene = state.scene.filter(|scene| !scene.resets())?;
        let rank = |call: &CallId| cast::rank(&scene.requests(call.writer)[call.request]);
        let done = state.writers.iter().flat_map(|writer| &writer.told);
        let done = done.filter(|(_, told)| *told == Told::Done);
        let latest = done.map(|(call, _)| rank(call)).max()?;
        let standing = state.landed.last().map(|(call, _)| rank(call));
        let older = standing < Some(latest);
        older.then(|| "a change was acknowledged, and something older stands".to_owned())
    }

    fn tell(&self, state: &State, action: &Action) -> String {
        let name = Scene::name;
        match *action {
            Action::Begin(scene) => format!("the scene: {}", scene.what()),
            Action::Answer(writer) => match self.question(state, writer) {
                Some(Question::Read) => format!("{} reads", name(writer)),
                _ => format!("{} swaps", name(writer)),
            },
            Action::Fail(writer) => format!("the store fails {}, and says so", name(writer)),
            Action::Lose(writer, false) => {
                format!("{} swaps, and the answer is lost", name(writer))
            }
            Action::Lose(writer, true) => {
                format!("{} swaps; it is on its way, and nobody knows", name(writer))
            }
            Action::Arrive(index) => {
                let from = state.flying.get(index).map_or("", |flying| name(flying.call.writer));
                format!("{from}'s swap arrives")
            }
        }
    }
}
