//! A worker that renders something of its own, so that a reader can tell whose it is: this very
//! test program, started again. It waits to be let go before it commits, so that a test can stop
//! it there.

use std::{collections::BTreeMap, path::PathBuf};

use palisade_api::{
    Client, ClientError,
    client::Upload,
    wire::{CapabilityWire, ClaimRequest, CompleteRequest, GrantWire},
};
use palisade_core::{
    lease::Pair,
    manifest::{Manifest, Output},
};
use palisade_lab::drill::{Process, wait_for};
use serde_json::Value;

use crate::common::{LIMIT, Stage};

/// The output's name.
pub(crate) const OUTPUT: &str = "video.mp4";

/// What a worker's output says.
pub(crate) fn of(name: &str) -> String {
    format!("rendered by {name}\n")
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn say(text: &str) {
    use std::io::Write as _;
    // The test harness prints in the middle of a line.
    writeln!(std::io::stdout(), "\n{text}").expect("standard output is there");
}

async fn claim(client: &Client, name: &str, ttl_ms: u64) -> GrantWire {
    let recipes = client.recipes().await.expect("it is told").recipes;
    let slow = recipes.into_iter().find(|recipe| recipe.name == "slow").expect("it is there");
    for index in 0.. {
        let asked = ClaimRequest {
            worker: name.to_owned(),
            session: format!("session-of-{name}"),
            request_id: format!("claim-{index}"),
            seq: 0,
            ttl_ms: Some(ttl_ms),
            wait_ms: 60_000,
            max_jobs: None,
            recipes: vec![CapabilityWire {
                recipe: slow.name.clone(),
                definition: slow.definition.clone(),
            }],
        };
        let claimed = client.claim(&asked).await.expect("it is answered");
        if let Some(grant) = claimed.grants.into_iter().next() {
            return grant;
        }
    }
    unreachable!("it asks until it is granted something")
}

/// Claims, renders, says so, waits to be let go, commits, says what came of it.
#[tokio::test]
#[ignore = "a worker, for the other tests here to start"]
async fn a_worker() {
    let (name, folder) = (variable("NAME"), PathBuf::from(variable("DIR")));
    let client = Client::new(&variable("PALISADE_SERVER")).expect("an address");
    let grant = claim(&client, &name, variable("TTL_MS").parse().expect("a number")).await;
    let pair = Pair {
        token: grant.token.try_into().expect("a token"),
        lease_id: grant.lease.parse().expect("a lease id"),
    };
    let file = folder.join(format!("{name}.out"));
    std::fs::write(&file, of(&name)).expect("a file");
    let purpose = Upload::Output { job: grant.job.clone(), pair };
    let (digest, size_bytes) = client.upload(&file, &purpose).await.expect("it arrives");
    let output = Output {
        name: OUTPUT.parse().expect("a name"),
        digest,
        size_bytes,
        media_type: "video/mp4".to_owned(),
        facts: BTreeMap::new(),
    };
    let manifest = Manifest { outputs: vec![output], ..Manifest::default() };
    let complete = CompleteRequest { token: grant.token, lease: grant.lease, manifest };
    say(&format!("rendered {}", grant.token));
    while !folder.join(format!("go-{name}")).exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    match client.complete(&grant.job, &complete).await {
        Ok(_) => say("completed"),
        Err(ClientError::Refused(problem)) => {
            say(&format!("refused {}", serde_json::to_string(&problem).expect("JSON")));
        }
        Err(error) => say(&format!("failed {error}")),
    }
}

/// Such a worker, from outside.
pub(crate) struct Worker {
    pub(crate) process: Process,
    go: PathBuf,
}

impl Worker {
    pub(crate) fn start(stage: &Stage, name: &str, ttl_ms: u64) -> Self {
        let folder = stage.dir.path();
        let (url, dir) = (stage.cluster.url(), folder.display().to_string());
        let ttl_ms = ttl_ms.to_string();
        let environment =
            [("PALISADE_SERVER", &*url), ("DIR", &dir), ("NAME", name), ("TTL_MS", &ttl_ms)];
        let program = std::env::current_exe().expect("this test's program");
        let args = ["worker::a_worker", "--exact", "--ignored", "--nocapture"].map(str::to_owned);
        let log = folder.join(format!("{name}.log"));
        let process = Process::start(name, &program, &args, &environment, &log);
        Self { process: process.expect("it starts"), go: folder.join(format!("go-{name}")) }
    }

    /// What follows these words on the first line that begins with them.
    pub(crate) async fn said(&self, start: &str) -> String {
        wait_for(&format!("{} to say {start:?}", self.process.name()), LIMIT, async || {
            let lines = self.process.lines();
            let found = lines.iter().find_map(|line| line.strip_prefix(start));
            found.map(str::to_owned).ok_or_else(|| format!("{lines:?}; {}", self.process.log()))
        })
        .await
        .expect("it says so")
    }

    /// Waits until it has rendered. Answers its token.
    pub(crate) async fn rendered(&self) -> u64 {
        self.said("rendered ").await.parse().expect("a number")
    }

    /// It may commit now.
    pub(crate) fn let_go(&self) {
        std::fs::write(&self.go, "").expect("a file");
    }

    /// What it is told as it commits: a refusal.
    pub(crate) async fn refused(&self) -> Value {
        serde_json::from_str(&self.said("refused ").await).expect("JSON")
    }
}

/// A lease that ends soon after its holder was stopped.
pub(crate) const SHORT_MS: u64 = 1_000;
/// A lease that outlasts the test.
pub(crate) const LONG_MS: u64 = 600_000;

/// Alice, stopped when she had rendered; and Bob, who was granted her job, and has rendered too.
/// Answers them and Bob's token.
pub(crate) async fn two(stage: &Stage) -> (Worker, Worker, u64) {
    let alice = Worker::start(stage, "alice", SHORT_MS);
    let first = alice.rendered().await;
    alice.process.stop();
    let bob = Worker::start(stage, "bob", LONG_MS);
    let second = bob.rendered().await;
    assert!(second > first, "{second} was granted after {first}");
    (alice, bob, second)
}

/// Alice wakes and commits. Answers what she is told.
pub(crate) async fn wake(alice: &Worker) -> Value {
    alice.let_go();
    alice.process.wake();
    alice.refused().await
}
