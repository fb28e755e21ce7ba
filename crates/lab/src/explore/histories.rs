//! One job, two workers, and everything that they asked and were told: each history must be
//! linearizable, whatever was lost, repeated, overtaken, or forgotten by a crash.

use std::collections::BTreeMap;

use palisade_core::{
    JobId, Number, Refusal, Timestamp,
    job::{Failure as Report, FailureKind},
    lease::Pair,
};
use palisade_store::{
    Failure,
    command::{Answer, Command, Fail},
};

use crate::{
    engine::{CrashEngine, Engine},
    linear::{Asked, Holding, Operation, Told, is_linearizable},
    sabotage::Sabotage,
};

use super::{
    bench::{self, TTL_MS},
    search::{Fingerprint, Model},
};

/// How often each worker claims.
const CLAIMS_MAX: [u64; 2] = [2, 1];

/// How often a message arrives at most: one of the claims twice, perhaps long after its answer.
fn arrivals_max(request: Request) -> u8 {
    if matches!(request, Request::Claim { worker: 1, .. }) { 2 } else { 1 }
}

/// A message to the server: the place of its operation in the history, and what it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    Claim { worker: usize, number: u64 },
    Complete { worker: usize, pair: Pair },
    Fail { worker: usize, pair: Pair },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Idle,
    Waiting(usize),
    Holding(Pair),
}

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    now: Timestamp,
    people: [At; 2],
    claims: [u64; 2],
    /// What is in the air: which operation, and how often it arrived.
    sent: BTreeMap<(usize, Request), u8>,
    /// Answers on their way.
    replies: Vec<(usize, Request, Told, Option<Pair>)>,
    history: Vec<Operation>,
    /// Events so far: the history's clock.
    clock: u64,
    passes: u8,
    crashes: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Claim(usize),
    Complete(usize),
    Fail(usize),
    Serve(usize, Request),
    /// The server decides it and dies: before the commit, or after it.
    Die(usize, Request, bool),
    Hear(usize),
    Pass,
}

/// The model.
pub(super) struct Histories {
    pub(super) broken: Option<Sabotage>,
}

fn job_id() -> JobId {
    JobId(Number::ZERO.next())
}

fn command(request: Request) -> Command {
    match request {
        Request::Claim { worker, number } => Command::Claim(bench::claim(worker, number, 0)),
        Request::Complete { worker, pair } => {
            bench::complete(job_id(), pair, bench::content_of(worker))
        }
        Request::Fail { pair, .. } => {
            let (reason, message) = ("tool_failed".to_owned(), "status 1".to_owned());
            let failure = Report { reason, message, kind: FailureKind::Retryable };
            Command::Fail(Fail { job: job_id(), pair, failure, chance: 0 })
        }
    }
}

/// What an answer says to whoever asked. None: nothing that it could rely on.
fn told(answer: &Result<Answer, Failure>) -> Option<(Told, Option<Pair>)> {
    Some(match answer {
        Ok(Answer::Claim(claimed)) => match claimed.grants.first() {
            Some(grant) => (Told::Granted(grant.pair.token), Some(grant.pair)),
            // What it had been granted it has lost since: the first answer counts.
            None if !claimed.lost.is_empty() => return None,
            None => (Told::Nothing, None),
        },
        Ok(Answer::Complete(completed)) => (Told::Completed(completed.completion.token), None),
        Ok(Answer::Fail(_)) => (Told::GivenBack, None),
        Err(Failure::Refused(Refusal::StaleToken { .. })) => (Told::Stale, None),
        Ok(_) | Err(_) => return None,
    })
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn ask(&mut self, worker: usize, asked: Asked, request: Request) {
        let asked_at = self.tick();
        let place = self.history.len();
        self.history.push(Operation { asked_at, asked, told: None });
        self.sent.insert((place, request), 0);
        self.people[worker] = At::Waiting(place);
    }

    fn decide(&mut self, place: usize, request: Request) {
        *self.sent.entry((place, request)).or_default() += 1;
        let answer = self.engine.apply(&command(request), self.now);
        self.engine.forget_journal();
        let waits = self.people.contains(&At::Waiting(place));
        if let Some((told, pair)) = told(&answer).filter(|_| waits) {
            self.replies.push((place, request, told, pair));
        }
    }

    fn hear(&mut self, index: usize) -> Result<(), String> {
        let (place, _, told, pair) = self.replies.remove(index);
        let Some(worker) = self.people.iter().position(|at| *at == At::Waiting(place)) else {
            return Ok(());
        };
        self.people[worker] = pair.map_or(At::Idle, At::Holding);
        let at = self.tick();
        self.history[place].told = Some((at, told));
        if told == Told::Nothing {
            // Not the end of a claim: a copy of it that comes late may yet be granted, unheard.
            let asked_at = self.history[place].asked_at;
            self.history.push(Operation { asked_at, asked: Asked::Claim, told: None });
        }
        // Whoever was answered waits no more, and what else was on its way to it does not count.
        self.replies.retain(|(other, ..)| *other != place);
        if is_linearizable(&self.history, Holding::UntilReplaced) {
            return Ok(());
        }
        Err("what they were told cannot have come about one at a time".to_owned())
    }
}

impl Model for Histories {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        bench::submitted(&mut engine, 0);
        bench::present(&mut engine, bench::content_of(0));
        bench::present(&mut engine, bench::content_of(1));
        engine.forget_journal();
        State {
            engine,
            now: bench::BEGIN,
            people: [At::Idle; 2],
            claims: [0; 2],
            sent: BTreeMap::new(),
            replies: Vec::new(),
            history: Vec::new(),
            clock: 0,
            passes: 0,
            crashes: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions: Vec<_> = (0..state.replies.len()).map(Action::Hear).collect();
        for (worker, at) in state.people.iter().enumerate() {
            match at {
                At::Idle if state.claims[worker] < CLAIMS_MAX[worker] => {
                    actions.push(Action::Claim(worker));
                }
                At::Holding(_) => {
                    actions.push(Action::Complete(worker));
                    // One of them fails once, so that there is something to be granted again.
                    if worker == 0 && state.claims[0] == 1 {
                        actions.push(Action::Fail(worker));
                    }
                }
                At::Idle | At::Waiting(_) => {}
            }
        }
        let arriving =
            state.sent.iter().filter(|((_, request), served)| **served < arrivals_max(*request));
        for ((place, request), _) in arriving {
            actions.push(Action::Serve(*place, *request));
            if state.crashes == 0 {
                let deaths = [false, true];
                actions.extend(deaths.map(|durable| Action::Die(*place, *request, durable)));
            }
        }
        // More than one loss gives the job up, which is another world's concern.
        if state.passes == 0 {
            actions.push(Action::Pass);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Claim(worker) => {
                state.claims[worker] += 1;
                let number = state.claims[worker];
                state.ask(worker, Asked::Claim, Request::Claim { worker, number });
            }
            Action::Complete(worker) | Action::Fail(worker) => {
                let At::Holding(pair) = state.people[worker] else { return Ok(state) };
                let token = pair.token;
                if matches!(action, Action::Complete(_)) {
                    let request = Request::Complete { worker, pair };
                    state.ask(worker, Asked::Complete(token), request);
                } else {
                    state.ask(worker, Asked::GiveBack(token), Request::Fail { worker, pair });
                }
            }
            Action::Serve(place, request) => {
                state.decide(place, request);
                state.engine.commit();
            }
            Action::Die(place, request, durable) => {
                state.crashes += 1;
                let heard = state.replies.len();
                state.decide(place, request);
                if self.broken != Some(Sabotage::AnsweredBeforeCommit) {
                    state.replies.truncate(heard);
                }
                if durable {
                    state.engine.commit();
                }
                state.engine.crash();
                state.engine.start(state.now);
            }
            Action::Hear(index) => state.hear(index)?,
            Action::Pass => {
                state.passes += 1;
                state.now = state.now.plus_ms(TTL_MS * 2);
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        into.take(&(state.now, state.people, state.claims, &state.sent, &state.replies));
        into.take(&(&state.history, state.passes, state.crashes));
    }

    fn wrong(&self, _state: &State) -> Option<String> {
        None
    }

    fn tell(&self, state: &State, action: &Action) -> String {
        const NAMES: [&str; 2] = ["A", "B"];
        match *action {
            Action::Claim(worker) => format!("{} claims", NAMES[worker]),
            Action::Complete(worker) => format!("{} sends its completion", NAMES[worker]),
            Action::Fail(worker) => format!("{} reports a failure", NAMES[worker]),
            Action::Serve(_, request) => format!("the server decides and commits {request:?}"),
            Action::Die(_, request, false) => {
                format!("the server decides {request:?}, dies before the commit, and starts")
            }
            Action::Die(_, request, true) => {
                format!("the server commits {request:?}, dies before it answers, and starts")
            }
            Action::Hear(index) => {
                let reply = state.replies.get(index);
                format!("whoever asked hears {:?}", reply.map(|(_, _, told, _)| told))
            }
            Action::Pass => "every lease runs out".to_owned(),
        }
    }
}
