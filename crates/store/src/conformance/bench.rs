//! What the behaviours work with: a store, its clock, and short ways to say what is asked.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use palisade_core::{
    Digest, JobId, LeaseId, Number, RequestId, SessionId, Tenant, Timestamp,
    clock::Clock,
    job::{Failure as FailureReport, FailureKind, Job},
    lease::Pair,
    manifest::{Manifest, Output},
    retry::RetryPolicy,
    spec::{InputRef, Spec},
    transition::Wish,
};

use crate::{
    Failure, Store, StoreExt,
    command::{
        Answer, BeginBlob, Capability, Claim, Claimed, Command, Complete, Fail, FinishBlob, Grant,
        Heartbeat, Pin, Release, Submit, Submitted,
    },
    query::{Query, View},
};

/// A clock that stands until it is moved.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that stands at an instant.
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Moves it on, by ms.
    pub fn advance_ms(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// When every behaviour's clock begins, in ms since the epoch.
pub const BEGINNING: Timestamp = Timestamp(1_700_000_000_000);

/// The length of the leases that the behaviours ask for, in ms.
pub const TTL_MS: u64 = 30_000;
/// Longer than such a lease, as the store counts it, in ms.
pub const PAST_TTL_MS: u64 = 31_000;

/// A store under test.
#[derive(Debug)]
pub struct Bench<S> {
    behaviour: &'static str,
    /// The store.
    pub store: S,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    next: AtomicU64,
}

impl<S: Store> Bench<S> {
    /// A bench around an empty store, for a behaviour.
    pub fn new(behaviour: &'static str, make: impl FnOnce(Arc<dyn Clock>) -> S) -> Self {
        let clock = Arc::new(ManualClock::at(BEGINNING));
        let store = make(Arc::<ManualClock>::clone(&clock));
        Self { behaviour, store, clock, next: AtomicU64::new(1) }
    }

    /// A value never given before.
    pub fn fresh(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Lets time pass, served: a store that had not served all the while would give it back.
    pub async fn pass_ms(&self, ms: u64) {
        let mut left = ms;
        while left > 0 {
            let step = left.min(1_000);
            self.clock.advance_ms(step);
            left -= step;
            let ticked = self.store.execute(vec![Command::Tick]).await;
            assert!(matches!(ticked[..], [Ok(Answer::Tick(_))]), "a tick is answered: {ticked:?}");
        }
    }

    /// A job as the store shows it.
    pub async fn job(&self, id: JobId) -> Job {
        match self.store.query(Query::Job(id)).await {
            Ok(View::Job(Some(job))) => *job,
            other => panic!("{id} should be there, but: {other:?}"),
        }
    }

    /// Brings a blob, pinned for long.
    pub async fn bring(&self, content: &str) -> Digest {
        let digest = Digest::of(content.as_bytes());
        let pin = Pin::Until(BEGINNING.plus_ms(1_000_000_000));
        let place = self.store.run(BeginBlob { digest, pin }).await.expect("a blob may be brought");
        if !place.present {
            let size_bytes = content.len() as u64;
            let finish = FinishBlob { digest, generation: place.generation, size_bytes };
            self.store.run(finish).await.expect("an upload may end");
        }
        digest
    }

    /// A wish with an input that is present, for a rendering of its own.
    pub async fn wish(&self) -> Wish {
        let source = format!("source {}", self.fresh());
        let digest = self.bring(&source).await;
        wish_for(digest, source.len() as u64)
    }

    /// Submits a wish.
    pub async fn submit(&self, wish: &Wish) -> Submitted {
        let submit = Submit { wish: wish.clone(), request_id: None };
        self.store.run(submit).await.expect("a wish is taken")
    }

    /// Submits a wish of its own. Answers the job.
    pub async fn new_job(&self) -> JobId {
        let wish = self.wish().await;
        self.submit(&wish).await.job
    }

    /// A claim that was never made before.
    pub fn claim_of(&self, worker: &str, jobs: usize) -> Claim {
        Claim {
            worker: worker.parse().expect("a worker's name"),
            session: session(worker),
            request_id: request(&format!("claim-{}", self.fresh())),
            seq: 0,
            ttl_ms: TTL_MS,
            capabilities: vec![capability()],
            lease_ids: (0..jobs).map(|_| LeaseId(0xA11C_E000 + u128::from(self.fresh()))).collect(),
        }
    }

    /// Claims.
    pub async fn claim(&self, claim: &Claim) -> Claimed {
        self.store.run(claim.clone()).await.expect("a claim is answered")
    }

    /// Claims one job, which must be there.
    pub async fn grant(&self, worker: &str) -> Grant {
        let claimed = self.claim(&self.claim_of(worker, 1)).await;
        claimed.grants.into_iter().next().expect("something is claimable")
    }

    /// Claims one job, if one is claimable.
    pub async fn try_grant(&self, worker: &str) -> Option<Grant> {
        self.claim(&self.claim_of(worker, 1)).await.grants.into_iter().next()
    }

    /// A complete for a grant, whose blob has been brought.
    pub async fn complete_of(&self, grant: &Grant) -> Complete {
        self.complete_with(grant, &format!("output of {}", grant.job.id)).await
    }

    /// A complete with an output of this content, whose blob has been brought.
    pub async fn complete_with(&self, grant: &Grant, content: &str) -> Complete {
        self.bring(content).await;
        Complete { job: grant.job.id, pair: grant.pair, manifest: manifest(content) }
    }

    /// Reports a failure that may pass.
    pub fn fail_of(grant: &Grant) -> Fail {
        let failure = failure("tool_failed", FailureKind::Retryable);
        Fail { job: grant.job.id, pair: grant.pair, failure, chance: 0 }
    }

    /// Hands a grant back.
    pub fn release_of(grant: &Grant) -> Release {
        Release { job: grant.job.id, pair: grant.pair }
    }

    /// Runs a verb that must be refused. Answers the refusal.
    pub async fn refused<V: crate::command::Verb + 'static>(
        &self,
        verb: V,
    ) -> palisade_core::Refusal
    where
        V::Answer: std::fmt::Debug,
    {
        match self.store.run(verb).await {
            Err(Failure::Refused(refusal)) => refusal,
            other => panic!("it should be refused, but: {other:?}"),
        }
    }
}

impl<S> Drop for Bench<S> {
    #[expect(clippy::print_stderr, reason = "a failing test says which behaviour it was")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this behaviour does not hold: {}", self.behaviour);
        }
    }
}

/// A session of a worker, the same for the same name.
pub fn session(worker: &str) -> SessionId {
    format!("session-of-{worker}").parse().expect("a session id")
}

/// A request id.
pub fn request(name: &str) -> RequestId {
    name.parse().expect("a request id")
}

/// What every worker of the behaviours can run.
pub fn capability() -> Capability {
    Capability {
        recipe: "h264-720p".parse().expect("a recipe's name"),
        definition: Digest::of(b"the definition of h264-720p"),
    }
}

/// A wish for a rendering of an input.
pub fn wish_for(digest: Digest, size_bytes: u64) -> Wish {
    let Capability { recipe, definition } = capability();
    let source = InputRef { digest, size_bytes, name: Some("holiday.mov".to_owned()) };
    let parameter = "crf".parse().expect("a parameter's name");
    let spec = Spec {
        recipe,
        definition,
        inputs: BTreeMap::from([("source".parse().expect("an input's name"), source)]),
        parameters: BTreeMap::from([(parameter, "23".to_owned())]),
    };
    Wish {
        tenant: Tenant::default_tenant(),
        spec,
        retry: RetryPolicy::default(),
        backup_after_ms: None,
        priority: 0,
        run_at: Timestamp(0),
        fresh: false,
        publish: None,
    }
}

/// A manifest with one output of this content.
pub fn manifest(content: &str) -> Manifest {
    let output = Output {
        name: "video.mp4".parse().expect("an output's name"),
        digest: Digest::of(content.as_bytes()),
        size_bytes: content.len() as u64,
        media_type: "video/mp4".to_owned(),
        facts: BTreeMap::from([("duration_s".to_owned(), serde_json::json!(12.5))]),
    };
    Manifest { outputs: vec![output], ..Manifest::default() }
}

/// What a worker reports of a failure.
pub fn failure(reason: &str, kind: FailureKind) -> FailureReport {
    FailureReport { reason: reason.to_owned(), message: format!("{reason}: it is so"), kind }
}

/// A heartbeat that lists grants.
pub fn heartbeat(worker: &str, seq: u64, grants: &[&Grant]) -> Heartbeat {
    Heartbeat {
        session: session(worker),
        seq,
        leases: grants.iter().map(|grant| (grant.job.id, grant.pair)).collect(),
        pending: Vec::new(),
        pauses: Vec::new(),
    }
}

/// A pair that nobody was granted.
pub fn never_granted() -> Pair {
    Pair { token: Number::new(1 << 40).expect("below 2^53"), lease_id: LeaseId(7) }
}
