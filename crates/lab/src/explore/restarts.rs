//! Only time in which the store served counts against a lease: a server that is stopped and
//! started at any time, a worker that lives and beats, and one that is dead.

use palisade_core::{JobId, Number, Timestamp, lease::Pair};
use palisade_store::command::{Answer, Command};

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
};

use super::{
    bench::{self, TTL_MS},
    search::{Fingerprint, Model},
};

/// One step of time, in ms: a beat comes in each that is served.
const STEP_MS: u64 = TTL_MS / 4;
/// How many steps there are.
const STEPS: u64 = 12;

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    now: Timestamp,
    up: bool,
    steps: u64,
    starts: u8,
    /// The worker that lives, and the one that died after its grant.
    pairs: [(JobId, Pair); 2],
    /// How long the server has served while the dead worker could not be replaced, in ms.
    kept_ms: u64,
    /// How long the server has served since the living worker was last heard, in ms.
    unheard_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Serve,
    Lose,
    Sleep,
    Stop,
    Start,
}

/// The model.
pub(super) struct Restarts {
    pub(super) broken: Option<Sabotage>,
}

impl State {
    fn passes(&mut self) {
        self.steps += 1;
        self.now = self.now.plus_ms(STEP_MS);
    }

    fn beat(&mut self) -> Result<(), String> {
        let beat = bench::heartbeat(0, self.steps, vec![self.pairs[0]]);
        let answer = self.engine.apply(&Command::Heartbeat(beat), self.now);
        self.engine.commit();
        match answer {
            Ok(Answer::Heartbeat(_)) => Ok(()),
            other => Err(format!("a heartbeat is answered {other:?}")),
        }
    }

    /// The server's own second hand.
    fn tick(&mut self) {
        if self.lease(1).is_some_and(|lease| lease.is_within(self.now)) {
            self.kept_ms += STEP_MS;
        }
        // A tick is never refused, and what it gives up concerns nobody here.
        let _ = self.engine.apply(&Command::Tick, self.now);
        self.engine.commit();
        self.engine.forget_journal();
    }

    fn lease(&self, which: usize) -> Option<palisade_core::lease::Lease> {
        let (job, pair) = self.pairs[which];
        Some(self.engine.job_now(job)?.attempt(pair.token)?.lease)
    }
}

impl Model for Restarts {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        let mut pairs = [0, 1].map(|worker| {
            let job = bench::submitted(&mut engine, worker as u64);
            let claim = Command::Claim(bench::claim(worker, 1, 0));
            let Ok(Answer::Claim(claimed)) = engine.apply(&claim, bench::BEGIN) else {
                panic!("a queued job can be claimed")
            };
            (job, claimed.grants[0].pair)
        });
        pairs.sort_by_key(|(_, pair): &(JobId, Pair)| pair.token);
        engine.commit();
        State {
            engine,
            now: bench::BEGIN,
            up: true,
            steps: 0,
            starts: 0,
            pairs,
            kept_ms: 0,
            unheard_ms: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        if state.steps >= STEPS {
            return Vec::new();
        }
        if !state.up {
            return vec![Action::Sleep, Action::Start];
        }
        let mut actions = vec![Action::Serve, Action::Lose];
        if state.starts < 4 {
            actions.push(Action::Stop);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match action {
            Action::Serve => {
                state.passes();
                state.tick();
                state.beat()?;
                state.unheard_ms = 0;
            }
            Action::Lose => {
                state.passes();
                state.tick();
                state.unheard_ms += STEP_MS;
            }
            Action::Sleep => state.passes(),
            Action::Stop => {
                state.up = false;
                state.engine.crash();
            }
            Action::Start => {
                state.up = true;
                state.starts += 1;
                state.engine.start(state.now);
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        into.take(&(state.now, state.up, state.steps, state.starts));
        into.take(&(state.kept_ms, state.unheard_ms));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        if !state.up {
            return None;
        }
        let living = state.lease(0)?;
        let dead = state.lease(1)?;
        if state.unheard_ms < TTL_MS && !living.is_within(state.now) {
            let ms = state.unheard_ms;
            return Some(format!("the living may be replaced after {ms} ms of served silence"));
        }
        // A whole ttl in the life of its grant, another in the next, and the clock's coarseness.
        if state.kept_ms > 2 * TTL_MS + STEP_MS && dead.is_within(state.now) {
            let ms = state.kept_ms;
            return Some(format!("the dead is kept after {ms} ms of served silence"));
        }
        if state.engine.live.counter == Number::ZERO {
            return Some("the counter is back at its beginning".to_owned());
        }
        None
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        match action {
            Action::Serve => "a quarter of a ttl is served; the living beats".to_owned(),
            Action::Lose => "a quarter of a ttl is served; the beat is lost".to_owned(),
            Action::Sleep => "a quarter of a ttl passes without a server".to_owned(),
            Action::Stop => "the server is killed".to_owned(),
            Action::Start => "the server starts".to_owned(),
        }
    }
}
