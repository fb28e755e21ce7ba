//! The designs, in the smallest world that tells them apart: two workers, one job, one effect, one
//! crash, one lease that may run out. Everybody may be paused between any two steps, for any time:
//! a step that is not taken yet is all that a pause is.

use std::collections::BTreeSet;

use palisade_core::{Digest, JobId, Timestamp, job::JobState, lease::Pair};
use palisade_store::command::{Answer, Command};

use crate::{
    designs::{Design, Effects},
    engine::{CrashEngine, Engine, Lie, LockEngine},
    notice,
    sabotage::Sabotage,
};

use super::{
    bench::{self, TTL_MS},
    search::{Fingerprint, Model},
};

/// The records, of either kind.
#[derive(Debug, Clone)]
enum Records {
    Lock(LockEngine),
    Palisade(Box<CrashEngine>),
}

impl Records {
    fn engine(&mut self) -> &mut dyn Engine {
        match self {
            Self::Lock(engine) => engine,
            Self::Palisade(engine) => &mut **engine,
        }
    }

    fn job(&self, id: JobId) -> Option<palisade_core::job::Job> {
        match self {
            Self::Lock(engine) => crate::engine::job_of(engine, id),
            Self::Palisade(engine) => engine.job_now(id),
        }
    }
}

/// How far a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Idle,
    Rendering,
    /// Rendered, and about to look whether it still holds the lease.
    Rendered,
    /// It looked, and may write.
    MayWrite,
    Written,
    Over,
    Dead,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Person {
    at: At,
    pair: Option<Pair>,
    /// Up to when it trusts its lease.
    trusts_until: Timestamp,
    /// Whether time passed that it does not know of.
    asleep: bool,
}

/// What the outside shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Shown {
    fence: Option<Pair>,
    effects: BTreeSet<Digest>,
}

/// Everything.
#[derive(Debug, Clone)]
pub(super) struct State {
    records: Records,
    now: Timestamp,
    people: [Person; 2],
    shown: Shown,
    crashes: u8,
    passes: u8,
    lies: u8,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Claim(usize),
    Lie(usize),
    Render(usize),
    Check(usize),
    Write(usize),
    Commit(usize),
    Renew(usize),
    Crash(usize),
    Pass,
    Project,
}

impl Action {
    /// Whose step it is.
    fn worker(self) -> Option<usize> {
        match self {
            Self::Claim(worker)
            | Self::Lie(worker)
            | Self::Render(worker)
            | Self::Check(worker)
            | Self::Write(worker)
            | Self::Commit(worker)
            | Self::Renew(worker)
            | Self::Crash(worker) => Some(worker),
            Self::Pass | Self::Project => None,
        }
    }
}

/// The model of a design.
pub(super) struct DesignModel {
    pub(super) design: Design,
    pub(super) broken: Option<Sabotage>,
}

const NAMES: [&str; 2] = ["A", "B"];

fn job_id() -> JobId {
    JobId(palisade_core::Number::ZERO.next())
}

impl DesignModel {
    /// What a worker makes: the same bytes, where its renderer is bit-exact.
    fn content(&self, worker: usize) -> Digest {
        bench::content_of(if self.design.effects() == Effects::Fenced { 0 } else { worker })
    }

    fn granted(&self, state: &mut State, worker: usize, answer: Option<Answer>) {
        let Some(Answer::Claim(claimed)) = answer else { return };
        let Some(grant) = claimed.grants.first() else { return };
        let trusts_until = state.now.plus_ms(TTL_MS * 9 / 10);
        state.people[worker] =
            Person { at: At::Rendering, pair: Some(grant.pair), trusts_until, asleep: false };
        if self.design.effects() == Effects::Fenced {
            // A new holder's first act: it raises the fence where its effects will land.
            let raised = state.shown.fence.is_none_or(|fence| fence.token <= grant.pair.token);
            if raised {
                state.shown.fence = Some(grant.pair);
            }
        }
    }

    fn write(&self, state: &mut State, worker: usize) {
        let Some(pair) = state.people[worker].pair else { return };
        let stale = state.shown.fence.is_some_and(|fence| pair.token < fence.token);
        if self.design.effects() == Effects::Fenced && stale {
            state.people[worker].at = At::Over;
            return;
        }
        if self.design.effects() == Effects::Fenced {
            state.shown.fence = Some(pair);
        }
        state.shown.effects.insert(self.content(worker));
        state.people[worker].at = At::Written;
    }

    fn commit(&self, state: &mut State, worker: usize) {
        let Some(pair) = state.people[worker].pair else { return };
        let now = state.now;
        let command = bench::complete(job_id(), pair, self.content(worker));
        // Whatever the answer: nothing is left to do for this worker.
        let _ = state.records.engine().apply(&command, now);
        state.records.engine().commit();
        state.people[worker].at = At::Over;
    }

    fn renew(state: &mut State, worker: usize) {
        let Some(pair) = state.people[worker].pair else { return };
        let now = state.now;
        let beat = bench::heartbeat(worker, 1, vec![(job_id(), pair)]);
        let answer = state.records.engine().apply(&Command::Heartbeat(beat), now);
        state.records.engine().commit();
        let held = matches!(answer, Ok(Answer::Heartbeat(beats))
            if beats.leases.first() == Some(&Some(palisade_core::transition::Beat::Held)));
        let person = &mut state.people[worker];
        if held {
            person.trusts_until = now.plus_ms(TTL_MS * 9 / 10);
        } else {
            // It lost the lease, and aborts by itself.
            person.at = At::Over;
        }
    }
}

impl Model for DesignModel {
    type State = State;
    type Action = Action;

    fn begin(&self) -> State {
        let mut records = match self.design {
            Design::LockForever => Records::Lock(LockEngine::new(false)),
            Design::Lease | Design::LeaseHeartbeat => Records::Lock(LockEngine::new(true)),
            _ => Records::Palisade(Box::new(bench::engine(self.broken))),
        };
        bench::submitted(records.engine(), 0);
        if let Records::Palisade(engine) = &mut records {
            bench::present(engine, bench::content_of(0));
            bench::present(engine, bench::content_of(1));
            if self.design.effects() == Effects::Projected {
                bench::endpoint(engine);
            }
        }
        let person =
            Person { at: At::Idle, pair: None, trusts_until: Timestamp::default(), asleep: false };
        State {
            records,
            now: bench::BEGIN,
            people: [person.clone(), person],
            shown: Shown::default(),
            crashes: 0,
            passes: 0,
            lies: 0,
        }
    }

    fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        // First of all, so that among the shortest stories the one with the early pause is told.
        // To a lock without expiry the time means nothing.
        if state.passes < 2 && self.design != Design::LockForever {
            actions.push(Action::Pass);
        }
        // The first to claim is A; then B goes first, so that the story tells of A's awakening.
        let nobody_yet = state.people.iter().all(|person| person.pair.is_none());
        for worker in if nobody_yet { [0, 1] } else { [1, 0] } {
            let person = &state.people[worker];
            let trusts = state.now < person.trusts_until;
            match person.at {
                At::Idle => {
                    actions.push(Action::Claim(worker));
                    if self.design == Design::LyingDispatch && state.lies < 2 {
                        actions.push(Action::Lie(worker));
                    }
                }
                At::Rendering => actions.push(Action::Render(worker)),
                At::Rendered if self.design.has_keeper() && !trusts => {}
                At::Rendered => actions.push(Action::Check(worker)),
                At::MayWrite => actions.push(Action::Write(worker)),
                At::Written => actions.push(Action::Commit(worker)),
                At::Over | At::Dead => {}
            }
            let holds = matches!(person.at, At::Rendering | At::Rendered);
            if self.design.has_keeper() && holds && !trusts {
                actions.push(Action::Renew(worker));
            }
            let alive = !matches!(person.at, At::Over | At::Dead);
            if state.crashes < 1 && alive {
                actions.push(Action::Crash(worker));
            }
        }
        let complete = state.records.job(job_id()).is_some_and(|job| job.completion.is_some());
        if self.design.effects() == Effects::Projected && complete {
            actions.push(Action::Project);
        }
        actions
    }

    fn next(&self, state: &State, action: &Action) -> Result<State, String> {
        let mut state = state.clone();
        let now = state.now;
        if let Some(worker) = action.worker() {
            state.people[worker].asleep = false;
        }
        match *action {
            Action::Claim(worker) => {
                let claim = Command::Claim(bench::claim(worker, 1, 0));
                let answer = state.records.engine().apply(&claim, now).ok();
                state.records.engine().commit();
                self.granted(&mut state, worker, answer);
            }
            Action::Lie(worker) => {
                state.lies += 1;
                let lie = Lie::GrantHeld { claim: bench::claim(worker, 1, 0), pick: 0 };
                let answer = state.records.engine().lie(&lie, now);
                state.records.engine().commit();
                self.granted(&mut state, worker, answer);
            }
            Action::Render(worker) => state.people[worker].at = At::Rendered,
            Action::Check(worker) => {
                // A queue's worker writes nothing itself: its next act is the commit.
                let projected = self.design.effects() == Effects::Projected;
                state.people[worker].at = if projected { At::Written } else { At::MayWrite };
            }
            Action::Write(worker) => self.write(&mut state, worker),
            Action::Commit(worker) => self.commit(&mut state, worker),
            Action::Renew(worker) => Self::renew(&mut state, worker),
            Action::Crash(worker) => {
                state.crashes += 1;
                state.people[worker].at = At::Dead;
            }
            Action::Pass => {
                state.passes += 1;
                for person in &mut state.people {
                    person.asleep = person.pair.is_some();
                }
                state.now = now.plus_ms(TTL_MS * 2);
            }
            Action::Project => {
                let Records::Palisade(engine) = &mut state.records else { return Ok(state) };
                let told = bench::lease_one(engine, now);
                engine.commit();
                let heard = told.and_then(|told| notice::read(&told.delivery.notice.body));
                let made = heard.and_then(|heard| heard.made);
                state.shown.effects.extend(made);
            }
        }
        Ok(state)
    }

    fn identify(&self, state: &State, into: &mut Fingerprint) {
        match &state.records {
            Records::Lock(engine) => {
                into.take(&engine.lock_of(job_id()));
                into.take(&state.records.job(job_id()).map(|job| job.state));
            }
            Records::Palisade(engine) => bench::identify(engine, into),
        }
        into.take(&(state.now, &state.people, &state.shown));
        into.take(&(state.crashes, state.passes, state.lies));
    }

    fn wrong(&self, state: &State) -> Option<String> {
        let effects = state.shown.effects.len();
        (effects > 1).then(|| format!("one job, {effects} lasting effects"))
    }

    fn stuck(&self, state: &State) -> Option<String> {
        let job = state.records.job(job_id())?;
        // Somebody who lives and has nothing to do would take the job, if it were to be had.
        let willing = state.people.iter().any(|person| person.at == At::Idle);
        let stalled = willing && job.state != JobState::Complete;
        // Time passes as long as it likes, and somebody asks once more.
        let mut later = state.clone();
        later.now = later.now.plus_ms(TTL_MS * 100);
        let idle = (0..2).filter(|worker| state.people[*worker].at == At::Idle);
        let claims = idle.map(Action::Claim).filter_map(|claim| self.next(&later, &claim).ok());
        let mut taken = claims.filter(|next| {
            let people = next.people.iter().zip(&later.people);
            people.into_iter().any(|(new, old)| new.at != old.at)
        });
        let stalled = stalled && taken.next().is_none();
        stalled.then(|| "a worker is idle, and the job is never done".to_owned())
    }

    fn tell(&self, state: &State, action: &Action) -> String {
        let slept = |worker: usize| {
            if state.people[worker].asleep {
                "wakes, does not know that time passed, and "
            } else {
                ""
            }
        };
        match *action {
            Action::Claim(worker) => format!("{} claims the job, and is granted it", NAMES[worker]),
            Action::Lie(worker) => format!("{} is granted the held job, by a lie", NAMES[worker]),
            Action::Render(worker) => format!("{} {}renders", NAMES[worker], slept(worker)),
            Action::Check(worker) if self.design.has_keeper() => {
                format!("{} looks: it holds the lease", NAMES[worker])
            }
            Action::Check(worker) => format!("{} is done rendering", NAMES[worker]),
            Action::Write(worker) => format!("{} {}writes", NAMES[worker], slept(worker)),
            Action::Commit(worker) => format!("{} reports the job as complete", NAMES[worker]),
            Action::Renew(worker) => format!("{} asks whether it still holds it", NAMES[worker]),
            Action::Crash(worker) => format!("{} crashes", NAMES[worker]),
            Action::Pass => "whoever is at work is paused; the lease expires".to_owned(),
            Action::Project => "the outbox delivers".to_owned(),
        }
    }
}
