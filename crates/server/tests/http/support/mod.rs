//! What the tests of the server share: a server on loopback over a store in memory, a recipe that
//! needs no tool, and a client that can say anything.

pub(crate) mod gate;
pub(crate) mod lossy;
pub(crate) mod raw;
pub(crate) mod receiver;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use palisade_api::{
    Client,
    wire::{
        CapabilityWire, ClaimRequest, CompleteRequest, GrantWire, HeartbeatRequest, InputWire,
        LeaseWire, SubmitRequest, SubmitResponse,
    },
};
use palisade_artefacts::{Blobs, MemoryBlobs};
use palisade_core::{
    Digest, Timestamp,
    clock::Clock,
    manifest::{Manifest, Output},
    recipe::{Recipe, RecipeBook},
};
use palisade_server::{Server, ServerConfig, ServerParts, SystemEntropy};
use palisade_store::{Store, memory::MemoryStore};
use serde_json::json;

/// A clock that tests move. It also creeps, so that things have an order in time.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicU64);

impl TestClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(1_700_000_000_000)))
    }

    pub(crate) fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// A server under test.
pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) definition: String,
}

impl House {
    pub(crate) async fn start() -> Self {
        Self::with(config()).await
    }

    pub(crate) async fn with(config: ServerConfig) -> Self {
        Self::over(config, Arc::new(MemoryBlobs::new())).await
    }

    pub(crate) async fn over(config: ServerConfig, blobs: Arc<dyn Blobs>) -> Self {
        let clock = TestClock::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::<TestClock>::clone(&clock)));
        Self::of(config, store, blobs, clock).await
    }

    pub(crate) async fn of(
        config: ServerConfig,
        store: Arc<dyn Store>,
        blobs: Arc<dyn Blobs>,
        clock: Arc<TestClock>,
    ) -> Self {
        let mut recipes = RecipeBook::new();
        let recipe = recipe("copy");
        let definition = recipe.definition().to_string();
        recipes.add(recipe).unwrap();
        recipes.add(self::recipe("other")).unwrap();
        let parts = ServerParts {
            store: Arc::clone(&store),
            blobs: Arc::clone(&blobs),
            recipes,
            entropy: Arc::new(SystemEntropy),
        };
        let server = Server::start(config, parts).await.unwrap();
        let client = Client::new(&server.url()).unwrap();
        Self { server, client, clock, store, blobs, definition }
    }

    /// Uploads an input and answers how a submission names it.
    pub(crate) async fn input(&self, bytes: &[u8]) -> InputWire {
        self.put(bytes, &[]).await;
        InputWire {
            digest: Digest::of(bytes).to_string(),
            size_bytes: bytes.len() as u64,
            name: Some("clip.mp4".to_owned()),
        }
    }

    /// Uploads bytes with headers.
    pub(crate) async fn put(&self, bytes: &[u8], headers: &[(&str, String)]) -> raw::Answer {
        let path = format!("/v1/blobs/{}", Digest::of(bytes));
        let mut request = raw::Request::new("PUT", &path).body(bytes);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = raw::ask(&self.server, request).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    }

    /// A wish for a rendering of these bytes.
    pub(crate) async fn wish(&self, bytes: &[u8]) -> SubmitRequest {
        SubmitRequest {
            recipe: "copy".to_owned(),
            inputs: BTreeMap::from([("source".to_owned(), self.input(bytes).await)]),
            ..SubmitRequest::default()
        }
    }

    /// Submits a rendering of these bytes.
    pub(crate) async fn submit(&self, bytes: &[u8]) -> SubmitResponse {
        self.client.submit(&self.wish(bytes).await).await.unwrap()
    }

    pub(crate) fn claim(&self, session: &str, request_id: &str, wait_ms: u64) -> ClaimRequest {
        ClaimRequest {
            worker: format!("worker-{session}"),
            session: session.to_owned(),
            request_id: request_id.to_owned(),
            seq: 0,
            ttl_ms: Some(30_000),
            wait_ms,
            max_jobs: None,
            recipes: vec![CapabilityWire {
                recipe: "copy".to_owned(),
                definition: self.definition.clone(),
            }],
        }
    }

    /// Claims, and expects exactly one grant.
    pub(crate) async fn grant(&self, session: &str, request_id: &str) -> GrantWire {
        let claimed = self.client.claim(&self.claim(session, request_id, 0)).await.unwrap();
        let [grant] = claimed.grants.try_into().unwrap();
        grant
    }

    /// Uploads an output of a grant and completes it.
    pub(crate) async fn finish(&self, grant: &GrantWire, bytes: &[u8]) -> CompleteRequest {
        self.put(bytes, &pin_headers(grant)).await;
        let complete = complete_of(grant, bytes);
        self.client.complete(&grant.job, &complete).await.unwrap();
        complete
    }

    /// Waits until so many claims wait at the server.
    pub(crate) async fn until_waiting(&self, count: u64) {
        self.until_metric("palisade_claims_waiting", count).await;
    }

    /// Waits until a number without labels is this one.
    pub(crate) async fn until_metric(&self, name: &str, value: u64) {
        let line = format!("\n{name} {value}\n");
        eventually(|| async {
            let answer = raw::ask(&self.server, raw::Request::new("GET", "/metrics")).await;
            answer.text().contains(&line).then_some(())
        })
        .await;
    }

    /// The job's state.
    pub(crate) async fn state(&self, job: &str) -> String {
        self.client.job(job).await.unwrap().state
    }
}

/// Settings for tests: any free port, and nothing that depends on the machine being fast.
pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        quiet_ms: 0,
        look_every: Duration::from_millis(20),
        ..ServerConfig::default()
    }
}

/// A recipe that copies its input.
pub(crate) fn recipe(name: &str) -> Recipe {
    serde_json::from_value(json!({
        "name": name,
        "description": "Copies a file.",
        "tool": { "name": "cp" },
        "inputs": [{ "name": "source", "description": "Any file.", "kind": "bytes" }],
        "outputs": [{ "name": "copy.mp4", "media_type": "video/mp4" }],
        "parameters": [
            { "name": "crf", "type": "integer", "min": 0, "max": 51, "default": "23" },
        ],
        "steps": [{ "argv": ["cp", "{input.source}", "{output}"] }],
    }))
    .unwrap()
}

pub(crate) fn pin_headers(grant: &GrantWire) -> [(&'static str, String); 3] {
    [
        ("palisade-job", grant.job.clone()),
        ("fencing-token", grant.token.to_string()),
        ("fencing-lease", grant.lease.clone()),
    ]
}

pub(crate) fn complete_of(grant: &GrantWire, bytes: &[u8]) -> CompleteRequest {
    let output = Output {
        name: "copy.mp4".parse().unwrap(),
        digest: Digest::of(bytes),
        size_bytes: bytes.len() as u64,
        media_type: "video/mp4".to_owned(),
        facts: BTreeMap::new(),
    };
    CompleteRequest {
        token: grant.token,
        lease: grant.lease.clone(),
        manifest: Manifest { outputs: vec![output], ..Manifest::default() },
    }
}

pub(crate) fn beat(session: &str, seq: u64, grants: &[&GrantWire]) -> HeartbeatRequest {
    let lease = |grant: &&GrantWire| LeaseWire {
        job: grant.job.clone(),
        token: grant.token,
        lease: grant.lease.clone(),
    };
    HeartbeatRequest {
        session: session.to_owned(),
        seq,
        leases: grants.iter().map(lease).collect(),
        pending: Vec::new(),
        pauses: Vec::new(),
    }
}

/// Looks until there is an answer. Slow machines look longer; only a fault looks for ever.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(look: impl Fn() -> F) -> T {
    for _ in 0..6_000 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came");
}
