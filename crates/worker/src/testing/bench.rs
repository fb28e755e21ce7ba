//! A worker in this world, and waiting for what happens to it.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use palisade_core::{
    clock::{Clock, Entropy},
    recipe::{Recipe, RecipeBook},
};

use super::{
    clock::ManualClock,
    runner::{ScriptedRun, ScriptedRunner},
    server::FakeServer,
};
use crate::{
    Components, Worker, WorkerConfig,
    disk::Disk,
    events::{EventSink, Stamped},
};

pub(crate) const TTL_MS: u64 = 6_000;
const STEP_MS: u64 = 50;
/// What is waited for happens within moments; a machine that takes this long has other troubles.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Bench {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) server: FakeServer,
    pub(crate) runner: Arc<ScriptedRunner>,
    pub(crate) disk: Arc<FakeDisk>,
    pub(crate) events: Arc<Recorder>,
    pub(crate) config: WorkerConfig,
    pub(crate) recipes: RecipeBook,
    folder: tempfile::TempDir,
}

#[derive(Debug)]
pub(crate) struct FakeDisk(pub(crate) AtomicU64);

impl Disk for FakeDisk {
    fn free_bytes(&self, _path: &std::path::Path) -> std::io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<Stamped>>);

impl EventSink for Recorder {
    fn write(&self, event: &Stamped) {
        self.0.lock().unwrap().push(event.clone());
    }
}

/// Numbers that are all different; nobody guesses here.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn next_u128(&self) -> u128 {
        u128::from(self.0.fetch_add(0x9e37_79b9, Ordering::Relaxed))
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new());
        let mut config = WorkerConfig::new("alice".parse().unwrap(), folder.path().join("data"));
        (config.ttl_ms, config.doubt_grace_ms) = (TTL_MS, 4 * TTL_MS);
        config.free_bytes_min = 1_000;
        let runner = ScriptedRunner::default();
        runner.versions.lock().unwrap().insert("cp".to_owned(), "9.1".to_owned());
        let mut recipes = RecipeBook::new();
        recipes.add(recipe("copy", "")).unwrap();
        Self {
            server: FakeServer::new(Arc::clone(&clock) as _),
            clock,
            runner: Arc::new(runner),
            disk: Arc::new(FakeDisk(AtomicU64::new(1_000_000))),
            events: Arc::default(),
            config,
            recipes,
            folder,
        }
    }

    pub(crate) async fn start(&self) -> Worker {
        Worker::start(self.config.clone(), self.components()).await.unwrap()
    }

    pub(crate) fn components(&self) -> Components {
        Components {
            connector: Arc::new(self.server.clone()),
            timer: Arc::clone(&self.clock) as _,
            entropy: Arc::new(Counting::default()),
            runner: Arc::clone(&self.runner) as _,
            recipes: Arc::new(self.recipes.clone()),
            disk: Arc::clone(&self.disk) as _,
            events: Arc::clone(&self.events) as _,
        }
    }

    pub(crate) fn recipe(&self) -> Recipe {
        self.recipes.get(&"copy".parse().unwrap()).unwrap().clone()
    }

    /// Submits one job and waits until it is being rendered. Answers its token.
    pub(crate) async fn rendering(&self) -> (Arc<ScriptedRun>, u64) {
        let before = self.runner.runs.lock().unwrap().len();
        let job = self.server.submit(&self.recipe(), format!("input {before}").as_bytes());
        let run = self.run(before).await;
        let state = self.server.state();
        let mut attempts = state.attempts.values().filter(|attempt| attempt.grant.job == job);
        (run, attempts.next_back().unwrap().grant.token)
    }

    /// The render of that index, once it was started.
    pub(crate) async fn run(&self, index: usize) -> Arc<ScriptedRun> {
        self.until("a render starts", || self.runner.runs.lock().unwrap().len() > index).await;
        Arc::clone(&self.runner.runs.lock().unwrap()[index])
    }

    /// Lets time pass until it is so.
    pub(crate) async fn until(&self, what: &str, so: impl Fn() -> bool) {
        let waiting = async {
            while !so() {
                self.clock.step(STEP_MS);
                // Real time, for the worker's threads to do what the instant asks of them.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "never: {what}; events: {:#?}", self.words());
    }

    /// Lets so much time pass.
    pub(crate) async fn pass(&self, ms: u64) {
        let end = self.clock.now().plus_ms(ms);
        self.until("time passes", || self.clock.now() >= end).await;
    }

    /// The events so far, as JSON.
    pub(crate) fn words(&self) -> Vec<serde_json::Value> {
        let events = self.events.0.lock().unwrap();
        events.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.words().iter().filter(|event| event["event"] == name).count()
    }

    /// The last event of that name, once there is one.
    pub(crate) async fn event(&self, name: &str) -> serde_json::Value {
        self.until(name, || self.count(name) > 0).await;
        self.words().into_iter().rfind(|event| event["event"] == name).unwrap()
    }

    /// Ends the worker as an operator in a hurry does.
    pub(crate) async fn end(&self, mut worker: Worker) {
        worker.hand_back();
        let over = Arc::new(AtomicU64::new(0));
        let done = Arc::clone(&over);
        let ending = tokio::spawn(async move {
            worker.finished().await;
            done.store(1, Ordering::Relaxed);
        });
        self.until("the worker ends", || over.load(Ordering::Relaxed) == 1).await;
        ending.await.unwrap();
    }

    /// What is left below the data folder, but for the lock.
    pub(crate) fn left(&self) -> Vec<PathBuf> {
        let folders = ["scratch", "inputs"].map(|name| self.config.data_dir.join(name));
        folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten())
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}

/// A recipe that needs 1,000 bytes beside its input.
pub(crate) fn recipe(name: &str, tool_version: &str) -> Recipe {
    let pin = if tool_version.is_empty() {
        String::new()
    } else {
        format!(", version = \"{tool_version}\"")
    };
    let text = format!(
        r#"
        name = "{name}"
        tool = {{ name = "cp"{pin} }}
        scratch = {{ input_percent = 0, constant_bytes = 1000 }}
        [[inputs]]
        name = "source"
        kind = "bytes"
        [[steps]]
        argv = ["cp", "{{input.source}}", "{{output}}"]
        [[outputs]]
        name = "out.bin"
        media_type = "application/octet-stream"
        "#
    );
    crate::recipes::parse(&text).unwrap()
}
