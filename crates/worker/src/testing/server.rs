//! A server in memory that keeps the rules a worker can see, and whose answers can be lost.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use palisade_api::{
    Problem,
    wire::{
        ClaimRequest, CompleteRequest, FailRequest, GrantWire, HeartbeatRequest, InputWire,
        LeaseWire, ReleaseRequest, SessionEvent,
    },
};
use palisade_core::{Digest, recipe::Recipe};
use tokio::sync::{mpsc, watch};

use crate::{
    control_plane::{CallError, Connector, ControlPlane},
    timer::Timer,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Claim,
    Heartbeat,
    Complete,
    Fail,
    Release,
    Session,
    Blob,
    Upload,
}

/// What happens to a call.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// It never arrives.
    Away,
    /// It is done, and its answer is lost.
    LoseReply,
    /// It is done, and nothing ever comes back.
    Hang,
    Refuse(Problem),
    /// It is done as ever, but something happens just before it arrives.
    First(fn(&mut State)),
}

type Script = Box<dyn FnMut(usize) -> Option<Fault> + Send>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Open,
    Closed(&'static str),
}

#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) grant: GrantWire,
    pub(crate) session: String,
    pub(crate) claim: String,
    pub(crate) claim_seq: u64,
    pub(crate) standing: Standing,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) queue: VecDeque<GrantWire>,
    pub(crate) attempts: BTreeMap<u64, Attempt>,
    pub(crate) blobs: BTreeMap<Digest, Bytes>,
    pub(crate) uploaded: BTreeMap<Digest, Vec<u8>>,
    pub(crate) seen_seq: u64,
    next: u64,
    scripts: BTreeMap<Verb, (usize, Script)>,
    pub(crate) sessions: Vec<mpsc::UnboundedSender<SessionEvent>>,
    pub(crate) claims: Vec<ClaimRequest>,
    pub(crate) beats: Vec<HeartbeatRequest>,
    pub(crate) completes: Vec<CompleteRequest>,
    pub(crate) fails: Vec<FailRequest>,
    pub(crate) releases: Vec<ReleaseRequest>,
    /// How many connections were made.
    pub(crate) connections: usize,
}

#[derive(Clone)]
pub(crate) struct FakeServer {
    state: Arc<Mutex<State>>,
    /// Counts changes, so that waits wake.
    pub(super) changed: watch::Sender<u64>,
    pub(super) timer: Arc<dyn Timer>,
}

impl std::fmt::Debug for FakeServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FakeServer")
    }
}

impl FakeServer {
    pub(crate) fn new(timer: Arc<dyn Timer>) -> Self {
        let state = State { next: 41, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), changed: watch::Sender::new(0), timer }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn change(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// From now on this decides about each call of that verb; it is told how many came before.
    pub(crate) fn script(
        &self,
        verb: Verb,
        script: impl FnMut(usize) -> Option<Fault> + Send + 'static,
    ) {
        self.state().scripts.insert(verb, (0, Box::new(script)));
    }

    /// Every call of these verbs meets this.
    pub(crate) fn all(&self, verbs: &[Verb], fault: impl Into<Option<Fault>>) {
        let fault = fault.into();
        for verb in verbs {
            let fault = fault.clone();
            self.script(*verb, move |_| fault.clone());
        }
    }

    pub(super) fn fault(&self, verb: Verb) -> Option<Fault> {
        let mut state = self.state();
        let (count, script) = state.scripts.get_mut(&verb)?;
        *count += 1;
        script(*count - 1)
    }

    /// Queues a job with one input. Answers its id.
    pub(crate) fn submit(&self, recipe: &Recipe, input: &[u8]) -> String {
        let digest = Digest::of(input);
        self.submit_with(recipe, digest, Bytes::copy_from_slice(input))
    }

    /// The same, where the bytes need not be what the digest says.
    pub(crate) fn submit_with(&self, recipe: &Recipe, digest: Digest, bytes: Bytes) -> String {
        let mut state = self.state();
        state.next += 1;
        let job = format!("j{}", state.next);
        let size_bytes = bytes.len() as u64;
        state.blobs.insert(digest, bytes);
        let input = InputWire { digest: digest.to_string(), size_bytes, name: None };
        state.queue.push_back(GrantWire {
            job: job.clone(),
            token: 0,
            lease: String::new(),
            ttl_ms: 0,
            waited_ms: 0,
            recipe: recipe.name.to_string(),
            definition: recipe.definition().to_string(),
            inputs: [("source".to_owned(), input)].into(),
            parameters: BTreeMap::new(),
            attempt: 1,
        });
        drop(state);
        self.change();
        job
    }

    /// Closes the open attempt of the only job, as another's grant or a cancel does.
    pub(crate) fn close(&self, token: u64, reason: &'static str) {
        let mut state = self.state();
        state.attempts.get_mut(&token).unwrap().standing = Standing::Closed(reason);
    }

    /// `open`, or what closed it.
    pub(crate) fn standing(&self, token: u64) -> &'static str {
        match self.state().attempts[&token].standing {
            Standing::Open => "open",
            Standing::Closed(reason) => reason,
        }
    }

    /// How many completes, fails and releases were sent.
    pub(crate) fn reported(&self) -> (usize, usize, usize) {
        let state = self.state();
        (state.completes.len(), state.fails.len(), state.releases.len())
    }

    pub(crate) fn job_of(&self, token: u64) -> String {
        self.state().attempts[&token].grant.job.clone()
    }

    pub(crate) fn say(&self, event: &SessionEvent) {
        self.state().sessions.retain(|session| session.send(event.clone()).is_ok());
    }

    pub(crate) fn break_sessions(&self) {
        self.state().sessions.clear();
    }
}

impl State {
    /// Grants up to so many queued jobs that the claim can run.
    pub(super) fn grant(&mut self, claim: &ClaimRequest, waited_ms: u64) -> Vec<GrantWire> {
        let mut grants = Vec::new();
        while grants.len() < claim.max_jobs.unwrap_or(1) as usize {
            let fits = |job: &GrantWire| claim.recipes.iter().any(|can| can.recipe == job.recipe);
            let Some(at) = self.queue.iter().position(fits) else { break };
            let mut grant = self.queue.remove(at).unwrap();
            self.next += 1;
            grant.token = self.next;
            grant.lease = format!("{:032x}", self.next);
            (grant.ttl_ms, grant.waited_ms) = (claim.ttl_ms.unwrap_or(30_000), waited_ms);
            let attempt = Attempt {
                grant: grant.clone(),
                session: claim.session.clone(),
                claim: claim.request_id.clone(),
                claim_seq: claim.seq,
                standing: Standing::Open,
            };
            self.attempts.insert(grant.token, attempt);
            grants.push(grant);
        }
        grants
    }

    /// The attempt that this pair names, or the refusal that its verb gets.
    pub(super) fn attempt(
        &mut self,
        job: &str,
        token: u64,
        lease: &str,
        own: &str,
    ) -> Result<&mut Attempt, CallError> {
        let known = self.attempts.get_mut(&token);
        match known.filter(|a| a.grant.job == job && a.grant.lease == lease) {
            None => Err(refused(422, "unknown_token")),
            Some(attempt) => match attempt.standing {
                Standing::Closed(reason) if reason != own => Err(refused(412, "stale_token")),
                Standing::Closed(_) | Standing::Open => Ok(attempt),
            },
        }
    }

    pub(super) fn lease(attempt: &Attempt) -> LeaseWire {
        let GrantWire { job, token, lease, .. } = attempt.grant.clone();
        LeaseWire { job, token, lease }
    }
}

pub(super) fn refused(status: u16, code: &str) -> CallError {
    CallError::Refused(Problem::new(status, code, format!("scripted {code}")))
}

impl Connector for FakeServer {
    fn connect(&self) -> Result<Box<dyn ControlPlane>, CallError> {
        self.state().connections += 1;
        Ok(Box::new(self.clone()))
    }
}
