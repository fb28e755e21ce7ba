//! One job, two workers, over the real operations: every message may be lost (it is never served),
//! repeated (served again), or overtaken; leases may run out at any time; the server may crash
//! between deciding and committing. A worker that takes no further step is a dead one.

mod checks;

use std::collections::BTreeSet;

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    job::{Failure as Report, FailureKind, Job},
    lease::Pair,
    transition::Beat,
};
use palisade_store::{
    Failure,
    command::{Answer, Command, Fail},
};

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
};

use super::{
    bench::{self, TTL_MS},
    search::{Fingerprint, Model},
};

/// A message to the server. It stays in the air: it may be served any number of times, or never.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    Claim { worker: usize, number: u64, seq: u64 },
    Beat { worker: usize, seq: u64, lease: Option<Pair>, pending: Option<u64> },
    Complete { worker: usize, pair: Pair },
    Fail { worker: usize, pair: Pair },
}

/// A message to a worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Reply {
    Granted { worker: usize, number: u64, pair: Pair },
    Nothing { worker: usize, number: u64 },
    Over { worker: usize, pair: Pair },
}

/// What somebody was told, and relies on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Promise {
    Granted(Number),
    Closed(Number),
    Completed(Number, Digest),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Idle,
    Claiming(u64),
    Holding(Pair),
    Reporting(Pair),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Person {
    at: At,
    claims: u64,
    seq: u64,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    now: Timestamp,
    people: [Person; 2],
    sent: BTreeSet<Request>,
    replies: BTreeSet<Reply>,
    promises: BTreeSet<Promise>,
    passes: u8,
    crashes: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Claim(usize),
    Beat(usize),
    Complete(usize),
    Fail(usize),
    Serve(Request),
    Receive(Reply),
    /// The server dies after it decided two requests, and before it committed.
    Crash(Option<(Request, Request)>),
    Pass,
}

/// The model.
pub(super) struct Attempts {
    pub(super) broken: Option<Sabotage>,
    /// Whether a second attempt may run beside the first.
    pub(super) backups: bool,
}

/// How often each worker claims.
const CLAIMS_MAX: [u64; 2] = [2, 1];

fn job_id() -> JobId {
    JobId(Number::ZERO.next())
}

fn job_of(engine: &CrashEngine) -> &Job {
    engine.live.jobs.get(&job_id()).expect("it was submitted before anything else")
}

fn is_open(engine: &CrashEngine, pair: Pair) -> bool {
    let attempt = job_of(engine).attempt(pair.token);
    attempt.is_some_and(|one| one.lease_id == pair.lease_id && one.closed.is_none())
}

impl Request {
    fn command(&self) -> Command {
        match self {
            Self::Claim { worker, number, seq } => {
                Command::Claim(bench::claim(*worker, *number, *seq))
            }
            Self::Beat { worker, seq, lease, pending } => {
                let leases = lease.iter().map(|pair| (job_id(), *pair)).collect();
                let mut beat = bench::heartbeat(*worker, *seq, leases);
                beat.pending =
                    pending.iter().map(|n| bench::claim(*worker, *n, 0).request_id).collect();
                Command::Heartbeat(beat)
            }
            Self::Complete { worker, pair } => {
                bench::complete(job_id(), *pair, bench::content_of(*worker))
            }
            Self::Fail { pair, .. } => {
                let failure = Report {
                    reason: "tool_failed".to_owned(),
                    message: "status 1".to_owned(),
                    kind: FailureKind::Retryable,
                };
                Command::Fail(Fail { job: job_id(), pair: *pair, failure, chance: 0 })
            }
        }
    }
}

impl State {
    /// Decides a request. Its answer may not leave before the commit, unless somebody broke that.
    fn decide(&mut self, request: &Request) -> Result<Told, String> {
        let before = self.engine.clone();
        let answer = self.engine.apply(&request.command(), self.now);
        self.engine.forget_journal();
        checks::check_answer(&before, request, &answer)?;
        checks::check_step(&before, &self.engine)?;
        let told = understood(request, &answer);
        let rests_on_nothing_new = before.live == self.engine.live;
        if self.engine.broken == Some(Sabotage::ReplayBeforeCommit) && rests_on_nothing_new {
            self.tell(told.clone());
        }
        Ok(told)
    }

    fn crash(&mut self, batch: Option<&(Request, Request)>) -> Result<(), String> {
        self.crashes += 1;
        if let Some((first, second)) = batch {
            self.decide(first)?;
            self.decide(second)?;
        }
        self.engine.crash();
        self.engine.start(self.now);
        Ok(())
    }

    fn tell(&mut self, (reply, promise): Told) {
        self.replies.extend(reply);
        self.promises.extend(promise);
    }

    fn receive(&mut self, reply: &Reply) {
        match reply {
            Reply::Granted { worker, pair, .. } => self.people[*worker].at = At::Holding(*pair),
            Reply::Nothing { worker, .. } | Reply::Over { worker, .. } => {
                self.people[*worker].at = At::Idle;
            }
        }
    }

    /// Whether the worker still waits for this.
    fn is_awaited(&self, reply: &Reply) -> bool {
        match reply {
            Reply::Granted { worker, number, .. } | Reply::Nothing { worker, number } => {
                self.people[*worker].at == At::Claiming(*number)
            }
            Reply::Over { worker, pair } => {
                let at = self.people[*worker].at;
                at == At::Holding(*pair) || at == At::Reporting(*pair)
            }
        }
    }
}

/// What an answer says, and what somebody relies on from then on.
type Told = (Option<Reply>, Option<Promise>);

/// What a worker makes of an answer, and what it relies on from then on.
fn understood(request: &Request, answer: &Result<Answer, Failure>) -> Told {
    match (request, answer) {
        (Request::Claim { worker, number, .. }, Ok(Answer::Claim(claimed))) => {
            let (worker, number) = (*worker, *number);
            match claimed.grants.first() {
                None => (Some(Reply::Nothing { worker, number }), None),
                Some(grant) => {
                    let pair = grant.pair;
                    let granted = Promise::Granted(pair.token);
                    (Some(Reply::Granted { worker, number, pair }), Some(granted))
                }
            }
        }
        (Request::Beat { worker, lease: Some(pair), .. }, Ok(Answer::Heartbeat(beats))) => {
            match beats.leases.first() {
                Some(Some(Beat::Held)) => (None, None),
                _ => over(*worker, *pair),
            }
        }
        (Request::Complete { worker, pair }, Ok(Answer::Complete(completed))) => {
            let completion = &completed.completion;
            let content = completion.manifest.outputs[0].digest;
            let told = Promise::Completed(completion.token, content);
            (Some(Reply::Over { worker: *worker, pair: *pair }), Some(told))
        }
        (Request::Fail { worker, pair }, Ok(_))
        | (
            Request::Complete { worker, pair } | Request::Fail { worker, pair },
            Err(Failure::Refused(_)),
        ) => over(*worker, *pair),
        _ => (None, None),
    }
}

fn over(worker: usize, pair: Pair) -> Told {
    (Some(Reply::Over { worker, pair }), Some(Promise::Closed(pair.token)))
}

impl Model for Attempts {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        bench::submitted(&mut engine, 0);
        bench::present(&mut engine, bench::content_of(0));
        bench::present(&mut engine, bench::content_of(1));
        if self.backups {
            let job = Job { backup_after_ms: Some(0), ..job_of(&engine).clone() };
            engine.force(job);
            engine.commit();
        }
        engine.forget_journal();
        let person = Person { at: At::Idle, claims: 0, seq: 0 };
        State {
            engine,
            now: bench::BEGIN,
            people: [person.clone(), person],
            sent: BTreeSet::new(),
            replies: BTreeSet::new(),
            promises: BTreeSet::new(),
            passes: 0,
            crashes: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (worker, person) in state.people.iter().enumerate() {
            match person.at {
                At::Idle if person.claims < CLAIMS_MAX[worker] => {
                    actions.push(Action::Claim(worker));
                }
                At::Holding(_) => {
                    actions.extend([Action::Complete(worker), Action::Fail(worker)]);
                }
                At::Idle | At::Claiming(_) | At::Reporting(_) => {}
            }
            if worker == 0 && person.seq < 1 && state.crashes == 0 && !self.backups {
                actions.push(Action::Beat(worker));
            }
        }
        actions.extend(state.sent.iter().cloned().map(Action::Serve));
        let awaited = state.replies.iter().filter(|reply| state.is_awaited(reply));
        actions.extend(awaited.cloned().map(Action::Receive));
        // A beat on both sides of a restart is another world's concern.
        if state.crashes < 1 && state.people[0].seq == 0 {
            actions.push(Action::Crash(None));
            // What a batch half decided leaves is the same with and without backups.
            for first in state.sent.iter().filter(|_| !self.backups) {
                let pairs = state.sent.iter().map(|second| Some((first.clone(), second.clone())));
                actions.extend(pairs.map(Action::Crash));
            }
        }
        // Without an open attempt the time means nothing here.
        if state.passes < if self.backups { 1 } else { 2 }
            && job_of(&state.engine).has_open_attempt()
        {
            actions.push(Action::Pass);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match action {
            Action::Claim(worker) => {
                let person = &mut state.people[*worker];
                person.claims += 1;
                let (number, seq) = (person.claims, person.seq);
                person.at = At::Claiming(number);
                state.sent.insert(Request::Claim { worker: *worker, number, seq });
            }
            Action::Beat(worker) => {
                let person = &mut state.people[*worker];
                person.seq += 1;
                let (lease, pending) = match person.at {
                    At::Holding(pair) | At::Reporting(pair) => (Some(pair), None),
                    At::Claiming(number) => (None, Some(number)),
                    At::Idle => (None, None),
                };
                let seq = person.seq;
                state.sent.insert(Request::Beat { worker: *worker, seq, lease, pending });
            }
            Action::Complete(worker) | Action::Fail(worker) => {
                let worker = *worker;
                let At::Holding(pair) = state.people[worker].at else { return Ok(state) };
                state.people[worker].at = At::Reporting(pair);
                state.sent.insert(match action {
                    Action::Complete(_) => Request::Complete { worker, pair },
                    _ => Request::Fail { worker, pair },
                });
            }
            Action::Serve(request) => {
                let told = state.decide(request)?;
                state.engine.commit();
                state.tell(told);
            }
            Action::Receive(reply) => state.receive(reply),
            Action::Crash(batch) => state.crash(batch.as_ref())?,
            Action::Pass => {
                state.passes += 1;
                state.now = state.now.plus_ms(TTL_MS * 2);
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        into.take(&(state.now, &state.people, &state.sent, &state.replies));
        into.take(&state.promises);
        into.take(&(state.passes, state.crashes));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        let job = job_of(&state.engine);
        let unkept = || state.promises.iter().find_map(|promise| checks::unkept(job, promise));
        checks::wrong_record(job).or_else(unkept)
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        match action {
            Action::Claim(worker) => format!("worker {worker} sends a claim"),
            Action::Beat(worker) => format!("worker {worker} sends a heartbeat"),
            Action::Complete(worker) => format!("worker {worker} sends its completion"),
            Action::Fail(worker) => format!("worker {worker} reports a failure"),
            Action::Serve(request) => format!("the server decides, commits, answers: {request:?}"),
            Action::Receive(reply) => format!("a worker hears: {reply:?}"),
            Action::Crash(None) => "the server crashes, and starts".to_owned(),
            Action::Crash(Some((first, second))) => {
                format!("the server decides {first:?} and {second:?}, crashes, and starts")
            }
            Action::Pass => "every lease runs out".to_owned(),
        }
    }
}
