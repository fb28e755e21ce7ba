//! A fenced object: two holders after one another, or of two jobs at once, each of whose writes may
//! arrive late, twice, or after the next one.

use std::collections::BTreeSet;

use palisade_core::{
    JobId, Number, ObjectKey, Refusal,
    lease::Pair,
    object::{Condition, Content, Object, Standing, Write, write},
};
use palisade_store::command::{Answer, Command};

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
};

use super::{
    bench::{self, TTL_MS},
    search::{Fingerprint, Model},
};

/// How often each writes.
const OPS_MAX: [u64; 2] = [3, 2];

/// A write in the air: whose, which of theirs, and whether it deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sent {
    worker: usize,
    pair: Pair,
    op: u64,
    deletes: bool,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    engine: CrashEngine,
    now: palisade_core::Timestamp,
    holders: [Option<Pair>; 2],
    ops: [u64; 2],
    sent: BTreeSet<Sent>,
    object: Option<Object>,
    versions: u64,
    passes: u8,
    /// The last write that was taken: token and op.
    taken: (Number, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Claim(usize),
    Send(usize, bool),
    Serve(Sent),
    Finish(usize),
    Pass,
}

/// The model.
pub(super) struct Objects {
    pub(super) broken: Option<Sabotage>,
}

/// The job that a token was granted for.
fn job_of(engine: &CrashEngine, token: Number) -> JobId {
    let granted = engine.live.jobs.values().find(|job| job.attempt(token).is_some());
    granted.expect("tokens come from grants").id
}

fn standing(engine: &CrashEngine, pair: Pair) -> Standing {
    let job = &engine.live.jobs[&job_of(engine, pair.token)];
    let attempt = job.attempt(pair.token).filter(|attempt| attempt.lease_id == pair.lease_id);
    match attempt.map(|attempt| &attempt.closed) {
        None => Standing::Unknown,
        Some(None) => Standing::Open,
        Some(Some(closed)) => {
            Standing::Closed { fence: job.fence, reason: closed.reason.to_string() }
        }
    }
}

impl Objects {
    fn serve(&self, state: &mut State, sent: Sent) -> Result<(), String> {
        let key: ObjectKey = "film".parse().expect("a fine name");
        let really = standing(&state.engine, sent.pair);
        let by_key_alone = self.broken == Some(Sabotage::FencedByWriterAlone);
        let seen = if by_key_alone { Standing::Open } else { really.clone() };
        let content = (!sent.deletes).then(|| Content::Blob {
            digest: bench::content_of(sent.worker),
            generation: Number::ZERO,
            size_bytes: sent.op,
            media_type: "video/mp4".to_owned(),
        });
        state.versions += 1;
        let version = Number::new(state.versions).expect("few writes");
        let fence = state.object.as_ref().map_or(Number::ZERO, |object| object.fence);
        let asked = Write { pair: sent.pair, op: sent.op, content, condition: Condition::None };
        let equal_refused = self.broken == Some(Sabotage::EqualIsLower) && sent.pair.token <= fence;
        let done = if equal_refused {
            Err(Refusal::StaleWrite { fence, reason: "not above the fence".to_owned() })
        } else {
            write(&key, state.object.as_ref(), asked, &seen, (version, state.now))
        };
        match done {
            Ok(written) => {
                if really != Standing::Open {
                    return Err(format!("token {} is closed, and writes", sent.pair.token));
                }
                let this = (sent.pair.token, sent.op);
                if !written.repeated && this <= state.taken {
                    return Err(format!("{this:?} is taken after {:?}", state.taken));
                }
                state.taken = state.taken.max(this);
                let forgotten = self.broken == Some(Sabotage::TombstoneForgotten) && sent.deletes;
                state.object = (!forgotten).then_some(written.object);
            }
            Err(Refusal::StaleWrite { .. })
                if really == Standing::Open && sent.pair.token >= fence =>
            {
                let token = sent.pair.token;
                return Err(format!("token {token} is open, and its write is refused as stale"));
            }
            Err(_) => {}
        }
        let after = state.object.as_ref().map_or(Number::ZERO, |object| object.fence);
        if after < fence { Err("the key's fence falls".to_owned()) } else { Ok(()) }
    }
}

impl Model for Objects {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut engine = bench::engine(self.broken);
        // Two jobs, so that one key may be guarded by two holders at once: the later one wins.
        bench::submitted(&mut engine, 0);
        bench::submitted(&mut engine, 1);
        bench::present(&mut engine, bench::content_of(0));
        engine.forget_journal();
        State {
            engine,
            now: bench::BEGIN,
            holders: [None; 2],
            ops: [0; 2],
            sent: BTreeSet::new(),
            object: None,
            versions: 0,
            passes: 0,
            taken: (Number::ZERO, 0),
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for (worker, ops_max) in OPS_MAX.into_iter().enumerate() {
            if state.holders[worker].is_none() {
                actions.push(Action::Claim(worker));
            } else {
                if state.ops[worker] < ops_max {
                    actions.extend([Action::Send(worker, false), Action::Send(worker, true)]);
                }
                actions.push(Action::Finish(worker));
            }
        }
        // Version numbers are drawn for each write; their number is what bounds repeats.
        if state.versions < 5 {
            actions.extend(state.sent.iter().copied().map(Action::Serve));
        }
        if state.passes < 1 {
            actions.push(Action::Pass);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        match *action {
            Action::Claim(worker) => {
                let claim = Command::Claim(bench::claim(worker, 1, 0));
                if let Ok(Answer::Claim(claimed)) = state.engine.apply(&claim, state.now) {
                    state.holders[worker] = claimed.grants.first().map(|grant| grant.pair);
                }
                state.engine.commit();
            }
            Action::Send(worker, deletes) => {
                state.ops[worker] += 1;
                let Some(pair) = state.holders[worker] else { return Ok(state) };
                state.sent.insert(Sent { worker, pair, op: state.ops[worker], deletes });
            }
            Action::Serve(sent) => self.serve(&mut state, sent)?,
            Action::Finish(worker) => {
                let Some(pair) = state.holders[worker] else { return Ok(state) };
                let complete =
                    bench::complete(job_of(&state.engine, pair.token), pair, bench::content_of(0));
                // A holder that was replaced is refused, which is nothing to this world.
                let _ = state.engine.apply(&complete, state.now);
                state.engine.commit();
            }
            Action::Pass => {
                state.passes += 1;
                state.now = state.now.plus_ms(TTL_MS * 2);
            }
        }
        state.engine.forget_journal();
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        bench::identify(&state.engine, into);
        into.take(&(state.now, state.holders, state.ops, &state.sent, state.versions));
        into.take(&(state.passes, state.taken));
        let object = state.object.as_ref();
        into.take(&object.map(|one| (one.fence, one.last.number, one.last.op, one.is_readable())));
    }

    fn wrong(&self, _state: &State) -> Option<String> {
        None
    }

    fn tell(&self, _state: &State, action: &Action) -> String {
        const NAMES: [&str; 2] = ["A", "B"];
        match *action {
            Action::Claim(worker) => format!("{} claims", NAMES[worker]),
            Action::Send(worker, false) => format!("{} sends a write", NAMES[worker]),
            Action::Send(worker, true) => format!("{} sends a delete", NAMES[worker]),
            Action::Serve(sent) => {
                let what = if sent.deletes { "delete" } else { "write" };
                format!("{}'s {what} {} arrives", NAMES[sent.worker], sent.op)
            }
            Action::Finish(worker) => format!("{} completes", NAMES[worker]),
            Action::Pass => "every lease runs out".to_owned(),
        }
    }
}
