//! One job, two workers, over the real operations: every message may be lost (it is never served),
//! repeated (served again), or overtaken; leases may run out at any time; the server may crash
//! between deciding and committing.

use std::collections::BTreeSet;

use palisade_core::{
    Digest, JobId, Number, Refusal, Timestamp,
    job::{CloseReason, Failure as Report, FailureKind, Job, JobState},
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
    Dead,
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
    undurable: Vec<(Option<Reply>, Option<Promise>)>,
    promises: BTreeSet<Promise>,
    passes: u8,
    crashes: u8,
    deaths: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Claim(usize),
    Beat(usize),
    Complete(usize),
    Fail(usize),
    Serve(Request),
    Receive(Reply),
    Commit,
    Crash,
    Die(usize),
    Pass,
}

/// The model.
pub(super) struct Attempts {
    pub(super) broken: Option<Sabotage>,
}

const CLAIMS_MAX: u64 = 2;

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
    fn serve(&mut self, request: &Request, broken: Option<Sabotage>) -> Result<(), String> {
        let before = self.engine.clone();
        let answer = self.engine.apply(&request.command(), self.now);
        self.engine.forget_journal();
        check_answer(&before, request, &answer)?;
        check_step(&before, &self.engine)?;
        let told = understood(request, &answer);
        let unchanged = before.live == self.engine.live;
        if broken == Some(Sabotage::ReplayBeforeCommit) && unchanged {
            self.tell(told);
        } else {
            self.undurable.push(told);
        }
        Ok(())
    }

    fn tell(&mut self, (reply, promise): (Option<Reply>, Option<Promise>)) {
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

/// What a worker makes of an answer, and what it relies on from then on.
fn understood(
    request: &Request,
    answer: &Result<Answer, Failure>,
) -> (Option<Reply>, Option<Promise>) {
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

fn over(worker: usize, pair: Pair) -> (Option<Reply>, Option<Promise>) {
    (Some(Reply::Over { worker, pair }), Some(Promise::Closed(pair.token)))
}

/// What an answer must never say.
fn check_answer(
    before: &CrashEngine,
    request: &Request,
    answer: &Result<Answer, Failure>,
) -> Result<(), String> {
    match (request, answer) {
        (Request::Beat { lease: Some(pair), .. }, Ok(Answer::Heartbeat(beats)))
            if beats.leases.first() == Some(&Some(Beat::Held)) && !is_open(before, *pair) =>
        {
            Err(format!("token {} hears `held`, and was closed before", pair.token))
        }
        (Request::Beat { worker, seq, pending, .. }, Ok(Answer::Heartbeat(beats))) => {
            for (_, token) in &beats.released {
                let attempt = job_of(before).attempt(*token).expect("it was just released");
                let pending = pending.map(|number| bench::claim(*worker, number, 0).request_id);
                if attempt.claim_seq >= *seq || Some(&attempt.claim) == pending.as_ref() {
                    return Err(format!("token {token} is released, and its reply is on its way"));
                }
            }
            Ok(())
        }
        (Request::Complete { pair, .. }, Ok(Answer::Complete(completed)))
            if completed.completion.token != pair.token =>
        {
            Err(format!("token {} completes in another's name", pair.token))
        }
        (Request::Complete { pair, .. }, Err(Failure::Refused(Refusal::StaleToken { .. })))
            if is_open(before, *pair) =>
        {
            Err(format!("token {} is open, and refused as stale", pair.token))
        }
        _ => Ok(()),
    }
}

/// What one step must never do to the record.
fn check_step(before: &CrashEngine, after: &CrashEngine) -> Result<(), String> {
    let (old, new) = (job_of(before), job_of(after));
    if new.fence < old.fence {
        return Err("the fence falls".to_owned());
    }
    if old.completion.is_some() && new.completion != old.completion {
        return Err("a completion changes".to_owned());
    }
    Ok(())
}

impl Model for Attempts {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        bench::submitted(&mut engine, 0);
        bench::present(&mut engine, bench::content_of(0));
        bench::present(&mut engine, bench::content_of(1));
        engine.forget_journal();
        let person = Person { at: At::Idle, claims: 0, seq: 0 };
        State {
            engine,
            now: bench::BEGIN,
            people: [person.clone(), person],
            sent: BTreeSet::new(),
            replies: BTreeSet::new(),
            undurable: Vec::new(),
            promises: BTreeSet::new(),
            passes: 0,
            crashes: 0,
            deaths: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (worker, person) in state.people.iter().enumerate() {
            match person.at {
                At::Idle if person.claims < CLAIMS_MAX => actions.push(Action::Claim(worker)),
                At::Holding(_) => {
                    actions.extend([Action::Complete(worker), Action::Fail(worker)]);
                }
                At::Idle | At::Claiming(_) | At::Reporting(_) | At::Dead => {}
            }
            if worker == 0 && person.seq < 1 && person.at != At::Dead {
                actions.push(Action::Beat(worker));
            }
            if state.deaths < 1 && worker == 1 && matches!(person.at, At::Holding(_)) {
                actions.push(Action::Die(worker));
            }
        }
        if state.undurable.len() < 2 {
            actions.extend(state.sent.iter().cloned().map(Action::Serve));
        }
        let awaited = state.replies.iter().filter(|reply| state.is_awaited(reply));
        actions.extend(awaited.cloned().map(Action::Receive));
        if !state.undurable.is_empty() || state.engine.is_dirty() {
            actions.push(Action::Commit);
            if state.crashes < 1 {
                actions.push(Action::Crash);
            }
        }
        if state.passes < 2 {
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
                    At::Idle | At::Dead => (None, None),
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
            Action::Serve(request) => state.serve(request, self.broken)?,
            Action::Receive(reply) => state.receive(reply),
            Action::Commit => {
                state.engine.commit();
                for told in std::mem::take(&mut state.undurable) {
                    state.tell(told);
                }
            }
            Action::Crash => {
                state.crashes += 1;
                state.undurable.clear();
                state.engine.crash();
                state.engine.start(state.now);
            }
            Action::Die(worker) => {
                state.deaths += 1;
                state.people[*worker].at = At::Dead;
            }
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
        into.take(&(&state.undurable, &state.promises));
        into.take(&(state.passes, state.crashes, state.deaths));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        let job = job_of(&state.engine);
        let open = job.open_attempts().count();
        let closed_for = |reason| {
            let closed = job.attempts.iter().filter_map(|attempt| attempt.closed.as_ref());
            closed.filter(|closed| closed.reason == reason).count()
        };
        let last = job.attempts.last().map(|attempt| attempt.token);
        if open > 1 {
            return Some("two attempts are open, and neither is a backup".to_owned());
        }
        if job.state != JobState::Running && open > 0 {
            return Some(format!("the job is {}, and an attempt is open", job.state));
        }
        if job.state != JobState::Running && last.is_some_and(|last| job.fence <= last) {
            return Some(format!("the job is {}, and its last token is not fenced off", job.state));
        }
        let (losses, failures) =
            (closed_for(CloseReason::Superseded), closed_for(CloseReason::Failed));
        if losses > bench::RETRY.losses_allowed as usize && job.state != JobState::Failed {
            return Some(format!("lost {losses} times, and still {}", job.state));
        }
        let live = job.state.is_live();
        if failures >= bench::RETRY.failures_allowed as usize && live && open == 0 {
            return Some(format!("failed {failures} times, and still {}", job.state));
        }
        let claims = job.attempts.iter().map(|attempt| (&attempt.session, &attempt.claim));
        if claims.collect::<BTreeSet<_>>().len() != job.attempts.len() {
            return Some("a claim asked again was granted something new".to_owned());
        }
        state.promises.iter().find_map(|promise| broken_promise(job, promise))
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        match action {
            Action::Claim(worker) => format!("worker {worker} sends a claim"),
            Action::Beat(worker) => format!("worker {worker} sends a heartbeat"),
            Action::Complete(worker) => format!("worker {worker} sends its completion"),
            Action::Fail(worker) => format!("worker {worker} reports a failure"),
            Action::Serve(request) => format!("the server decides: {request:?}"),
            Action::Receive(reply) => format!("a worker hears: {reply:?}"),
            Action::Commit => "the server commits, and answers".to_owned(),
            Action::Crash => "the server crashes before the commit, and starts".to_owned(),
            Action::Die(worker) => format!("worker {worker} dies"),
            Action::Pass => "every lease runs out".to_owned(),
        }
    }
}

fn broken_promise(job: &Job, promise: &Promise) -> Option<String> {
    let kept = match promise {
        Promise::Granted(token) => job.attempt(*token).is_some(),
        Promise::Closed(token) => {
            job.attempt(*token).is_none_or(|attempt| attempt.closed.is_some())
        }
        Promise::Completed(token, content) => job.completion.as_ref().is_some_and(|completion| {
            completion.token == *token && completion.manifest.outputs[0].digest == *content
        }),
    };
    (!kept).then(|| format!("somebody was told {promise:?}, and it is not so"))
}
