//! Jobs by the thousand.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::UNIX_EPOCH,
};

use palisade_core::{
    Digest, LeaseId, Tenant, Timestamp,
    clock::Clock,
    manifest::{Manifest, Output},
    retry::RetryPolicy,
    spec::{InputRef, Spec},
    transition::{Beat, Wish},
};
use palisade_store::{
    Store, StoreExt,
    command::{BeginBlob, Capability, Claim, Complete, FinishBlob, Grant, Heartbeat, Pin, Submit},
};

/// The wall.
#[derive(Debug)]
pub(crate) struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "the edge of this program")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
        let ms = since.expect("after 1970").as_millis();
        Timestamp(u64::try_from(ms).expect("before the year 500,000,000"))
    }
}

/// A store with an input and an output brought.
#[derive(Debug)]
pub(crate) struct Load {
    store: Arc<dyn Store>,
    input: Digest,
    output: Digest,
    next: AtomicU64,
}

impl Load {
    pub(crate) async fn over(store: impl Store + 'static) -> Self {
        let store: Arc<dyn Store> = Arc::new(store);
        let pin = Pin::Until(WallClock.now().plus_ms(1_000_000_000));
        let mut digests = Vec::new();
        for content in ["input", "output"] {
            let digest = Digest::of(content.as_bytes());
            let place = store.run(BeginBlob { digest, pin }).await.expect("answered");
            let generation = place.generation;
            let finish = FinishBlob { digest, generation, size_bytes: content.len() as u64 };
            store.run(finish).await.expect("answered");
            digests.push(digest);
        }
        Self { store, input: digests[0], output: digests[1], next: AtomicU64::new(1) }
    }

    fn fresh(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn capability() -> Capability {
        let definition = Digest::of(b"definition");
        Capability { recipe: "h264-720p".parse().expect("a name"), definition }
    }

    fn wish(&self) -> Wish {
        let Capability { recipe, definition } = Self::capability();
        let input = InputRef { digest: self.input, size_bytes: 5, name: None };
        let payload = format!("{:0>200}", self.fresh());
        let spec = Spec {
            recipe,
            definition,
            inputs: BTreeMap::from([("source".parse().expect("a name"), input)]),
            parameters: BTreeMap::from([("payload".parse().expect("a name"), payload)]),
        };
        Wish {
            tenant: Tenant::default_tenant(),
            spec,
            retry: RetryPolicy::default(),
            backup_after_ms: None,
            priority: 0,
            run_at: Timestamp(0),
            publish: None,
            fresh: false,
        }
    }

    pub(crate) async fn submit(&self, count: usize) {
        let submit = || {
            let id = format!("submit-{}", self.fresh());
            Submit { wish: self.wish(), request_id: Some(id.parse().expect("an id")) }
        };
        let wishes = (0..count).map(|_| submit()).collect();
        for answer in self.store.run_all(wishes).await {
            answer.expect("taken");
        }
    }

    pub(crate) async fn claim(&self, worker: &str, count: usize) -> Vec<Grant> {
        let claim = Claim {
            worker: worker.parse().expect("a name"),
            session: format!("session-{worker}").parse().expect("an id"),
            request_id: format!("claim-{}", self.fresh()).parse().expect("an id"),
            seq: 0,
            ttl_ms: 3_600_000,
            capabilities: vec![Self::capability()],
            lease_ids: (0..count).map(|_| LeaseId(u128::from(self.fresh()))).collect(),
        };
        self.store.run(claim).await.expect("answered").grants
    }

    pub(crate) async fn complete(&self, grants: Vec<Grant>) -> u64 {
        let manifest = || Manifest {
            outputs: vec![Output {
                name: "video.mp4".parse().expect("a name"),
                digest: self.output,
                size_bytes: 6,
                media_type: "video/mp4".to_owned(),
                facts: BTreeMap::new(),
            }],
            ..Manifest::default()
        };
        let completes: Vec<_> = grants
            .into_iter()
            .map(|grant| Complete { job: grant.job.id, pair: grant.pair, manifest: manifest() })
            .collect();
        let count = completes.len() as u64;
        for answer in self.store.run_all(completes).await {
            answer.expect("completed");
        }
        count
    }

    pub(crate) async fn beat(&self, worker: &str, seq: u64, grants: &[Grant]) -> u64 {
        let leases: Vec<_> = grants.iter().map(|grant| (grant.job.id, grant.pair)).collect();
        let count = leases.len() as u64;
        let session = format!("session-{worker}").parse().expect("an id");
        let beat = Heartbeat { session, seq, leases, pending: Vec::new(), pauses: Vec::new() };
        let beats = self.store.run(beat).await.expect("answered");
        assert!(beats.leases.iter().all(|beat| *beat == Some(Beat::Held)), "all are held");
        count
    }
}
