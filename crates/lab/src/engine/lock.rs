//! What platforms do today: a table of jobs, and a lock on each.
//!
//! An honest small implementation. The lock is taken under a random owner id and only its owner
//! renews or frees it; a claim asked again gets its first answer; every write is durable before
//! it is answered. What it lacks is what the problem is about: the lock either never expires, or
//! it expires on somebody who is only paused; and completion asks for the job alone.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    JobId, LeaseId, Number, Refusal, RequestId, Timestamp,
    history::Joined,
    job::{CloseReason, Completion, Job, JobState, Requeued},
    lease::Pair,
    transition::{self, Beat, Completed, LostReason},
};
use palisade_store::{
    Failure,
    command::{
        Answer, Beats, Claim, Claimed, Command, Complete, Grant, Heartbeat, Submit, Submitted,
        Suspected, Ticked,
    },
    query::{Query, View},
};

use super::{Engine, Lie};

/// A lock that somebody took.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lock {
    /// Its owner's random id.
    pub owner: LeaseId,
    /// The claim that took it.
    pub claim: RequestId,
    /// How long it lasts without renewal, in ms.
    pub ttl_ms: u64,
    /// When it expires. None: never.
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    job: Job,
    lock: Option<Lock>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Tables {
    counter: u64,
    rows: BTreeMap<JobId, Row>,
    requests: BTreeMap<RequestId, Submitted>,
    claims: BTreeSet<RequestId>,
}

/// A table of jobs with a lock on each.
#[derive(Debug, Clone)]
pub struct LockEngine {
    expires: bool,
    live: Tables,
}

impl LockEngine {
    /// An empty table, whose locks expire or do not.
    pub fn new(expires: bool) -> Self {
        Self { expires, live: Tables::default() }
    }

    /// A job's lock.
    pub fn lock_of(&self, id: JobId) -> Option<&Lock> {
        self.live.rows.get(&id)?.lock.as_ref()
    }

    fn draw(&mut self) -> Number {
        self.live.counter += 1;
        Number::new(self.live.counter).expect("a run draws few numbers")
    }

    fn submit(&mut self, submit: &Submit, now: Timestamp) -> Submitted {
        let known = submit.request_id.as_ref().and_then(|id| self.live.requests.get(id));
        if let Some(submitted) = known {
            return *submitted;
        }
        let number = self.draw();
        let job = transition::create(number, submit.wish.clone(), now).job;
        let submitted = Submitted { job: job.id, submission: number, how: Joined::New };
        self.live.rows.insert(job.id, Row { job, lock: None });
        if let Some(id) = &submit.request_id {
            self.live.requests.insert(id.clone(), submitted);
        }
        submitted
    }

    fn claim(&mut self, claim: &Claim, now: Timestamp) -> Claimed {
        let mut claimed =
            Claimed { grants: Vec::new(), again: false, lost: Vec::new(), next_at: None };
        let mine =
            |row: &&mut Row| row.lock.as_ref().is_some_and(|lock| lock.claim == claim.request_id);
        let free = |row: &&mut Row| {
            let expired = |lock: &Lock| lock.expires_at.is_some_and(|at| at <= now);
            row.job.state.is_live() && row.lock.as_ref().is_none_or(expired)
        };
        let first_time = self.live.claims.insert(claim.request_id.clone());
        let mut rows = self.live.rows.values_mut();
        let found = if first_time { rows.find(free) } else { rows.find(mine) };
        let Some(row) = found else { return claimed };
        let owner = row.lock.as_ref().filter(|lock| lock.claim == claim.request_id);
        let owner = owner.map_or(claim.lease_ids[0], |lock| lock.owner);
        let expires_at = self.expires.then(|| now.plus_ms(claim.ttl_ms));
        row.lock =
            Some(Lock { owner, claim: claim.request_id.clone(), ttl_ms: claim.ttl_ms, expires_at });
        row.job.state = JobState::Running;
        // There is no token in this design; the owner's id is all that a holder has.
        let pair = Pair { token: Number::ZERO, lease_id: owner };
        claimed.grants.push(Grant { job: row.job.clone(), pair, ttl_ms: claim.ttl_ms });
        claimed
    }

    fn heartbeat(&mut self, beat: &Heartbeat, now: Timestamp) -> Beats {
        let renewed = |(id, pair): &(JobId, Pair)| {
            let lost = || {
                let (reason, fence) = (CloseReason::Superseded, Number::ZERO);
                Beat::Lost(LostReason { reason, fence, completed_by: None })
            };
            let row = self.live.rows.get_mut(id)?;
            let Some(lock) = row.lock.as_mut().filter(|lock| lock.owner == pair.lease_id) else {
                return Some(lost());
            };
            lock.expires_at = lock.expires_at.map(|_| now.plus_ms(lock.ttl_ms));
            Some(Beat::Held)
        };
        Beats { leases: beat.leases.iter().map(renewed).collect(), released: Vec::new() }
    }

    /// The wall clock may have been set back: no lock lasts longer than its ttl all the same.
    fn bound_locks(&mut self, now: Timestamp) {
        for lock in self.live.rows.values_mut().filter_map(|row| row.lock.as_mut()) {
            lock.expires_at = lock.expires_at.map(|at| at.min(now.plus_ms(lock.ttl_ms)));
        }
    }

    /// `UPDATE jobs SET status = 'complete' WHERE id = …`: whoever asks.
    fn complete(&mut self, complete: &Complete, now: Timestamp) -> Result<Completed, Refusal> {
        let row = self.row(complete.job)?;
        let completion = Completion {
            token: complete.pair.token,
            worker: "whoever".parse().expect("a fine name"),
            at: now,
            manifest: complete.manifest.clone(),
        };
        row.job.state = JobState::Complete;
        row.job.completion = Some(completion.clone());
        row.lock = row.lock.take().filter(|lock| lock.owner != complete.pair.lease_id);
        Ok(Completed { completion, manifest_differs: false })
    }

    fn give_back(&mut self, job: JobId, pair: Pair) -> Result<Requeued, Refusal> {
        let row = self.row(job)?;
        row.lock = row.lock.take().filter(|lock| lock.owner != pair.lease_id);
        if row.lock.is_none() && row.job.state == JobState::Running {
            row.job.state = JobState::Queued;
        }
        Ok(Requeued { state: row.job.state, run_at: None })
    }

    fn row(&mut self, id: JobId) -> Result<&mut Row, Refusal> {
        let missing = Refusal::NotFound { what: "job", id: id.to_string() };
        self.live.rows.get_mut(&id).ok_or(missing)
    }
}

impl Engine for LockEngine {
    fn apply(&mut self, command: &Command, now: Timestamp) -> Result<Answer, Failure> {
        self.bound_locks(now);
        match command {
            Command::Submit(submit) => Ok(Answer::Submit(self.submit(submit, now))),
            Command::Claim(claim) => Ok(Answer::Claim(self.claim(claim, now))),
            Command::Heartbeat(beat) => Ok(Answer::Heartbeat(self.heartbeat(beat, now))),
            Command::Complete(complete) => Ok(Answer::Complete(self.complete(complete, now)?)),
            Command::Fail(fail) => Ok(Answer::Fail(self.give_back(fail.job, fail.pair)?)),
            Command::Release(release) => {
                Ok(Answer::Release(self.give_back(release.job, release.pair)?))
            }
            Command::Suspect(_) => Ok(Answer::Suspect(Suspected { leases: Vec::new() })),
            Command::Tick => Ok(Answer::Tick(Ticked { given_up: Vec::new() })),
            _ => Err(Failure::Unavailable("a lock service does not know this".to_owned())),
        }
    }

    /// Each statement is durable by itself: there is nothing left to commit, or to lose.
    fn commit(&mut self) {}

    fn crash(&mut self) {}

    fn start(&mut self, now: Timestamp) -> Timestamp {
        now
    }

    fn query(&self, query: &Query) -> View {
        match query {
            Query::Job(id) => {
                View::Job(self.live.rows.get(id).map(|row| Box::new(row.job.clone())))
            }
            Query::Jobs(_) => {
                View::Jobs(self.live.rows.values().rev().map(|row| row.job.clone()).collect())
            }
            _ => View::Events(Vec::new()),
        }
    }

    fn lie(&mut self, _lie: &Lie, _now: Timestamp) -> Option<Answer> {
        None
    }

    fn fill_disk(&mut self) {}
}
