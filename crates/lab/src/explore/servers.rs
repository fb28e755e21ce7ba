//! Two servers on one store, each of which reads its clock, is paused, and only then runs its
//! transaction: a heartbeat here and the next one there, a connection that breaks at one server
//! while its worker lives on at the other, ticks of both, and ticks that are late.

use std::collections::BTreeMap;

use palisade_core::{
    JobId, Number, Timestamp,
    job::{CloseReason, Job, JobState},
    lease::Pair,
    transition::Beat,
};
use palisade_store::command::{Answer, Command, Suspect};

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
};

use super::{
    bench::{self, TTL_MS},
    search::{Fingerprint, Model},
};

/// One step of time, in ms: a lease runs out in two of them.
const STEP_MS: u64 = TTL_MS * 6 / 10;
const STEPS_MAX: u8 = 3;
/// How much the servers do, both together.
const WORK_MAX: u8 = 5;
const BEATS_MAX: u64 = 2;

/// What a server has in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Work {
    /// The first worker's heartbeat.
    Beat(u64),
    /// A worker's claim.
    Claim(usize),
    /// A worker's completion.
    Complete(usize, Pair),
    /// The first worker's connection broke at this server.
    Suspect(Timestamp),
    Tick,
}

/// A server: what it took in hand, and when it read its clock for it.
type Hand = Option<(Work, Timestamp)>;

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    now: Timestamp,
    servers: [Hand; 2],
    /// What a broken tick has read before its transaction.
    read: [Option<Job>; 2],
    /// A broken store's blocks of numbers.
    drawn: [u64; 2],
    pairs: [Option<Pair>; 2],
    beats: u64,
    broke: bool,
    completes: [bool; 2],
    /// Up to when each token was promised, when that was said last, and whether a suspicion that
    /// is not older took it back.
    promised: BTreeMap<Number, (Timestamp, Timestamp)>,
    highest: Option<Number>,
    passes: u8,
    taken: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Take(usize, Work),
    Run(usize),
    Pass,
}

/// The model.
pub(super) struct Servers {
    pub(super) broken: Option<Sabotage>,
}

fn job_id() -> JobId {
    JobId(Number::ZERO.next())
}

fn job_of(engine: &CrashEngine) -> Job {
    engine.job_now(job_id()).expect("it was submitted first")
}

fn lost(job: &Job) -> usize {
    let closed = job.attempts.iter().filter_map(|attempt| attempt.closed.as_ref());
    closed.filter(|closed| closed.reason == CloseReason::Superseded).count()
}

impl Servers {
    fn run(&self, state: &mut State, server: usize) -> Result<(), String> {
        let Some((work, clock)) = state.servers[server].take() else { return Ok(()) };
        let before = job_of(&state.engine);
        if self.broken == Some(Sabotage::NumbersCached) {
            state.engine.live.counter = Number::new(state.drawn[server]).expect("small");
        }
        let command = match work {
            Work::Beat(seq) => {
                let pair = state.pairs[0].expect("it beats for what it holds");
                Command::Heartbeat(bench::heartbeat(0, seq, vec![(job_id(), pair)]))
            }
            Work::Claim(worker) => Command::Claim(bench::claim(worker, 1, 0)),
            Work::Complete(worker, pair) => {
                bench::complete(job_id(), pair, bench::content_of(worker))
            }
            Work::Suspect(seen_at) => {
                let session = bench::session(0).parse().expect("a fine id");
                Command::Suspect(Suspect { session, seen_at })
            }
            Work::Tick => Command::Tick,
        };
        let answer = state.engine.apply(&command, clock);
        if self.broken == Some(Sabotage::ExpiredTwice) && work == Work::Tick {
            let read = state.read[server].take();
            expire_what_was_read(&mut state.engine, read.as_ref(), clock);
        }
        state.engine.commit();
        state.engine.forget_journal();
        state.drawn[server] = state.engine.live.counter.get();
        match (work, answer) {
            (Work::Claim(worker), Ok(Answer::Claim(claimed))) => {
                if let Some(grant) = claimed.grants.first() {
                    state.pairs[worker] = Some(grant.pair);
                    promise(state, grant.pair.token, clock);
                }
            }
            (Work::Beat(_), Ok(Answer::Heartbeat(beats))) => {
                let held = beats.leases.first() == Some(&Some(Beat::Held));
                if let Some(pair) = state.pairs[0].filter(|_| held) {
                    promise(state, pair.token, clock);
                }
            }
            (Work::Suspect(seen_at), _) => {
                if let Some(pair) = state.pairs[0]
                    && let Some((until, said_at)) = state.promised.get_mut(&pair.token)
                    && *said_at <= seen_at
                {
                    *until = Timestamp::default();
                }
            }
            _ => {}
        }
        Self::check(state, work, &before)
    }

    /// What one step must never do.
    fn check(state: &mut State, work: Work, before: &Job) -> Result<(), String> {
        let after = job_of(&state.engine);
        if after.fence < before.fence {
            return Err("the fence falls".to_owned());
        }
        if before.completion.is_some() && before.completion != after.completion {
            return Err("a completion changes".to_owned());
        }
        if after.losses as usize != lost(&after) {
            let (counted, lost) = (after.losses, lost(&after));
            return Err(format!("{lost} attempt(s) were lost, and {counted} losses are counted"));
        }
        for attempt in before.open_attempts() {
            let ended = after.attempt(attempt.token).and_then(|after| after.closed.as_ref());
            let promised = state.promised.get(&attempt.token).map(|(until, _)| *until);
            let superseded = ended.is_some_and(|it| it.reason == CloseReason::Superseded);
            if superseded && promised > Some(state.now) {
                let token = attempt.token;
                return Err(format!("token {token} is replaced within the time it was promised"));
            }
        }
        if matches!(work, Work::Suspect(_) | Work::Tick) {
            let longer = before.open_attempts().find(|old| {
                let new = after.attempt(old.token);
                new.is_some_and(|new| new.lease.deadline > old.lease.deadline)
            });
            if let Some(attempt) = longer {
                return Err(format!("token {} is kept for longer, unheard", attempt.token));
            }
        }
        let newest = after.attempts.last().map(|attempt| attempt.token);
        if newest < state.highest {
            return Err("tokens do not rise".to_owned());
        }
        state.highest = newest;
        Ok(())
    }
}

/// Nobody else has the job for a ttl from when the server read its clock.
fn promise(state: &mut State, token: Number, clock: Timestamp) {
    let (until, said_at) = state.promised.entry(token).or_default();
    *until = (*until).max(clock.plus_ms(TTL_MS));
    *said_at = (*said_at).max(clock);
}

/// A careless reaper: decides by what it read before its transaction, and adds one to what is there.
fn expire_what_was_read(engine: &mut CrashEngine, read: Option<&Job>, now: Timestamp) {
    let lapsed = |read: &Job| read.state == JobState::Running && read.is_claimable(now);
    if !read.is_some_and(lapsed) {
        return;
    }
    let mut job = job_of(engine);
    job.losses += 1;
    engine.force(job);
}

impl Model for Servers {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        bench::submitted(&mut engine, 0);
        bench::present(&mut engine, bench::content_of(0));
        bench::present(&mut engine, bench::content_of(1));
        engine.forget_journal();
        let drawn = engine.live.counter.get();
        State {
            engine,
            now: bench::BEGIN,
            servers: [None; 2],
            read: [None, None],
            drawn: [drawn, drawn + 32],
            pairs: [None; 2],
            beats: 0,
            broke: false,
            completes: [false; 2],
            promised: BTreeMap::new(),
            highest: None,
            passes: 0,
            taken: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for server in 0..2 {
            if state.servers[server].is_some() {
                actions.push(Action::Run(server));
                continue;
            }
            if state.taken >= WORK_MAX {
                continue;
            }
            let mut take = |work| actions.push(Action::Take(server, work));
            if let Some(pair) = state.pairs[0] {
                if state.beats < BEATS_MAX {
                    take(Work::Beat(state.beats + 1));
                }
                if !state.broke {
                    take(Work::Suspect(state.now));
                }
                if !state.completes[0] {
                    take(Work::Complete(0, pair));
                }
            }
            if let Some(pair) = state.pairs[1].filter(|_| !state.completes[1]) {
                take(Work::Complete(1, pair));
            }
            // A claim is asked again until it is granted something.
            for worker in 0..2 {
                if state.pairs[worker].is_none() {
                    take(Work::Claim(worker));
                }
            }
            take(Work::Tick);
        }
        if state.passes < STEPS_MAX {
            actions.push(Action::Pass);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Take(server, work) => {
                match work {
                    Work::Beat(seq) => state.beats = seq,
                    Work::Suspect(_) => state.broke = true,
                    Work::Complete(worker, _) => state.completes[worker] = true,
                    Work::Tick if self.broken == Some(Sabotage::ExpiredTwice) => {
                        state.read[server] = Some(job_of(&state.engine));
                    }
                    Work::Tick | Work::Claim(_) => {}
                }
                state.taken += 1;
                state.servers[server] = Some((work, state.now));
            }
            Action::Run(server) => self.run(&mut state, server)?,
            Action::Pass => {
                state.passes += 1;
                state.now = state.now.plus_ms(STEP_MS);
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        into.take(&(state.now, state.servers, state.pairs, state.beats, state.broke));
        into.take(&(state.completes, &state.promised, state.passes, state.taken));
        if self.broken.is_some() {
            into.take(&state.drawn);
        }
    }

    fn wrong(&self, _state: &State) -> Option<String> {
        None
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        const NAMES: [&str; 2] = ["A", "B"];
        match *action {
            Action::Take(server, work) => {
                let what = match work {
                    Work::Beat(seq) => format!("A's heartbeat {seq}"),
                    Work::Claim(worker) => format!("{}'s claim", NAMES[worker]),
                    Work::Complete(worker, _) => format!("{}'s completion", NAMES[worker]),
                    Work::Suspect(_) => "that A's connection broke".to_owned(),
                    Work::Tick => "its tick".to_owned(),
                };
                format!("server {server} takes {what}, and reads its clock")
            }
            Action::Run(server) => format!("server {server} runs its transaction"),
            Action::Pass => format!("{STEP_MS} ms pass"),
        }
    }
}
