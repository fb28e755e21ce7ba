//! Clients that submit, claim and complete, and ask again until they know.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use palisade_api::{
    Client, ClientError, Problem,
    client::Upload,
    wire::{CapabilityWire, ClaimRequest, CompleteRequest, GrantWire, InputWire, SubmitRequest},
};
use palisade_core::{
    Digest, Number,
    lease::Pair,
    manifest::{Manifest, Output},
};
use tokio::task::JoinHandle;

use crate::common::Stage;

/// What all of them were told.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    /// Which job each wish was acknowledged as.
    pub(crate) submitted: BTreeMap<u64, String>,
    /// Every grant: its job and its token.
    pub(crate) granted: BTreeSet<(String, u64)>,
    /// By which tokens a job was said to be completed.
    pub(crate) completed: BTreeMap<String, BTreeSet<u64>>,
}

/// The clients, and what they have in common.
#[derive(Debug, Clone)]
pub(crate) struct Crowd(Arc<Common>);

#[derive(Debug)]
struct Common {
    urls: Vec<String>,
    jobs: u64,
    next: AtomicU64,
    claims: AtomicU64,
    input: InputWire,
    output: (PathBuf, Output),
    capability: CapabilityWire,
    seen: Mutex<Seen>,
}

impl Crowd {
    pub(crate) async fn gather(stage: &Stage, jobs: u64) -> Self {
        let file = |name: &str, text: &str| {
            let path = stage.dir.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path
        };
        let source = file("source.txt", "what all of them begin with");
        let (digest, size_bytes) =
            stage.client().upload(&source, &Upload::Input).await.expect("it arrives");
        let made = "what all of them make";
        let output = Output {
            name: "out.txt".parse().expect("a name"),
            digest: Digest::of(made.as_bytes()),
            size_bytes: made.len() as u64,
            media_type: "text/plain".to_owned(),
            facts: [].into(),
        };
        let recipes = stage.client().recipes().await.expect("the recipes").recipes;
        let recipe = recipes.into_iter().find(|recipe| recipe.name == "number").expect("there");
        let servers = 0..stage.cluster.servers();
        Self(Arc::new(Common {
            urls: servers.map(|i| format!("http://{}", stage.cluster.address_of(i))).collect(),
            jobs,
            next: AtomicU64::new(0),
            claims: AtomicU64::new(0),
            input: InputWire { digest: digest.to_string(), size_bytes, name: None },
            output: (file("out.txt", made), output),
            capability: CapabilityWire { recipe: recipe.name, definition: recipe.definition },
            seen: Mutex::default(),
        }))
    }

    /// The same, through one address alone.
    pub(crate) fn at(self, url: &str) -> Self {
        let mut common = Arc::into_inner(self.0).expect("nobody works yet");
        common.urls = vec![url.to_owned()];
        Self(Arc::new(common))
    }

    /// Starts so many clients. Each ends when all jobs were said to be complete.
    pub(crate) fn work(&self, clients: usize) -> Vec<JoinHandle<()>> {
        (0..clients)
            .map(|index| {
                let crowd = self.clone();
                tokio::spawn(async move { crowd.one(index).await })
            })
            .collect()
    }

    /// What they were told so far.
    pub(crate) fn seen(&self) -> Seen {
        self.0.seen.lock().expect("no panic").clone()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.seen.lock().expect("no panic").completed.len() as u64 >= self.0.jobs
    }

    pub(crate) fn completed(&self) -> u64 {
        self.0.seen.lock().expect("no panic").completed.len() as u64
    }

    async fn one(&self, index: usize) {
        let mut urls = self.0.urls.clone();
        urls.rotate_left(index % self.0.urls.len());
        let client = Client::new(&urls.join(",")).expect("addresses");
        while self.0.next.load(Ordering::SeqCst) < self.0.jobs {
            let number = self.0.next.fetch_add(1, Ordering::SeqCst);
            if number < self.0.jobs {
                self.submit(&client, number).await;
            }
        }
        while !self.is_over() {
            self.claim_and_complete(&client, &format!("worker-{index}"), 8).await;
        }
    }

    /// Submits a wish until it is acknowledged. Answers the job's id.
    pub(crate) async fn submit(&self, client: &Client, number: u64) -> String {
        let wish = SubmitRequest {
            recipe: "number".to_owned(),
            inputs: [("source".to_owned(), self.0.input.clone())].into(),
            parameters: [("number".to_owned(), number.into())].into(),
            request_id: Some(format!("wish-{number}")),
            ..SubmitRequest::default()
        };
        let answer = insist(|| client.submit(&wish)).await;
        let job = answer.expect("a wish that is right is not refused").job;
        self.0.seen.lock().expect("no panic").submitted.insert(number, job.clone());
        job
    }

    /// Claims at most so many jobs, and completes them.
    pub(crate) async fn claim_and_complete(&self, client: &Client, worker: &str, most: u32) {
        let claim = ClaimRequest {
            worker: worker.to_owned(),
            session: format!("session-of-{worker}"),
            request_id: format!("claim-{}", self.0.claims.fetch_add(1, Ordering::SeqCst)),
            seq: 0,
            ttl_ms: Some(10_000),
            wait_ms: 1_000,
            max_jobs: Some(most),
            recipes: vec![self.0.capability.clone()],
        };
        let Ok(claimed) = insist(|| client.claim(&claim)).await else { return };
        for grant in claimed.grants {
            let granted = (grant.job.clone(), grant.token);
            self.0.seen.lock().expect("no panic").granted.insert(granted);
            // Refused: it took too long, and the job is another's.
            if let Ok(token) = self.complete(client, &grant).await {
                let mut seen = self.0.seen.lock().expect("no panic");
                seen.completed.entry(grant.job).or_default().insert(token);
            }
        }
    }

    async fn complete(&self, client: &Client, grant: &GrantWire) -> Result<u64, Problem> {
        let token = Number::new(grant.token).expect("a token");
        let pair = Pair { token, lease_id: grant.lease.parse().expect("a lease id") };
        let (path, output) = &self.0.output;
        let upload = Upload::Output { job: grant.job.clone(), pair };
        insist(|| client.upload(path, &upload)).await?;
        let complete = CompleteRequest {
            token: grant.token,
            lease: grant.lease.clone(),
            manifest: Manifest { outputs: vec![output.clone()], ..Manifest::default() },
        };
        let done = insist(|| client.complete(&grant.job, &complete)).await?;
        Ok(done.completed_by)
    }
}

/// Asks until it is known what came of it.
async fn insist<A, F>(ask: impl Fn() -> F) -> Result<A, Problem>
where
    F: Future<Output = Result<A, ClientError>>,
{
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.is_unconfirmed() => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(ClientError::Refused(problem)) => return Err(problem),
            Err(other) => panic!("{other:?}"),
        }
    }
}
