//! A real server, and workers before it.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use palisade_api::{
    Client,
    client::Upload,
    wire::{InputWire, JobView, SubmitRequest},
};
use palisade_artefacts::MemoryBlobs;
use palisade_core::recipe::RecipeBook;
use palisade_server::{Server, ServerConfig, ServerParts, SystemClock, SystemEntropy};
use palisade_store::memory::MemoryStore;
use palisade_worker::{
    Components, Worker, WorkerConfig,
    clock::BoottimeClock,
    control_plane::HttpConnector,
    disk::SystemDisk,
    entropy::OsEntropy,
    events::{NoEvents, Stamped},
    recipes,
    render_runner::RenderRunner,
};
use serde_json::Value;
use tokio::sync::broadcast;

use super::exports::renderer;

/// What is waited for comes in seconds; a machine that takes this long has other troubles.
const PATIENCE: Duration = Duration::from_secs(90);

/// Takes its time, then copies.
const SLOW_COPY: &str = r#"
    name = "slow-copy"
    tool = { name = "sleep" }
    scratch = { input_percent = 100, constant_bytes = 1000 }
    [[inputs]]
    name = "source"
    kind = "bytes"
    [[parameters]]
    name = "seconds"
    type = "integer"
    min = 0
    max = 1000
    [[steps]]
    argv = ["sleep", "{param.seconds}"]
    [[steps]]
    argv = ["cp", "{input.source}", "{output}"]
    [[outputs]]
    name = "copy.bin"
    media_type = "application/octet-stream"
"#;

pub(crate) fn book() -> RecipeBook {
    let mut book = recipes::built_in();
    book.add(recipes::parse(SLOW_COPY).expect("it is a recipe")).expect("it is valid");
    book
}

pub(crate) struct Service {
    pub(crate) server: Server,
    pub(crate) client: Client,
}

impl Service {
    pub(crate) async fn start() -> Self {
        let parts = ServerParts {
            store: Arc::new(MemoryStore::new(Arc::new(SystemClock::new()))),
            blobs: Arc::new(MemoryBlobs::new()),
            recipes: book(),
            entropy: Arc::new(SystemEntropy),
        };
        let listen = "127.0.0.1:0".parse().expect("an address");
        // Suspicion would end a lease sooner than these tests want to see it end.
        let config = ServerConfig { listen, suspect_after_ms: 600_000, ..ServerConfig::default() };
        let server = Server::start(config, parts).await.expect("it starts");
        let client = Client::new(&server.url()).expect("its address");
        Self { server, client }
    }

    /// Uploads a file and submits it. Answers the job's id.
    pub(crate) async fn submit(
        &self,
        file: &Path,
        recipe: &str,
        parameters: &[(&str, &str)],
    ) -> String {
        let (digest, size_bytes) =
            self.client.upload(file, &Upload::Input).await.expect("uploaded");
        let input = InputWire { digest: digest.to_string(), size_bytes, name: None };
        let parameters = parameters.iter();
        let wish = SubmitRequest {
            recipe: recipe.to_owned(),
            inputs: BTreeMap::from([("source".to_owned(), input)]),
            parameters: parameters.map(|(k, v)| ((*k).to_owned(), Value::from(*v))).collect(),
            ..SubmitRequest::default()
        };
        self.client.submit(&wish).await.expect("submitted").job
    }

    /// The job, once it is over.
    pub(crate) async fn over(&self, job: &str) -> JobView {
        loop {
            let view = self.client.wait(job, Duration::from_secs(30)).await.expect("there");
            if !matches!(view.state.as_str(), "queued" | "running") {
                return view;
            }
        }
    }

    pub(crate) async fn output(&self, job: &str, name: &str) -> Vec<u8> {
        let mut download = self.client.output(job, name).await.expect("there");
        let mut bytes = Vec::new();
        while let Some(chunk) = download.next().await.expect("whole") {
            bytes.extend_from_slice(&chunk);
        }
        bytes
    }
}

/// A worker and what it tells.
pub(crate) struct Watched {
    pub(crate) worker: Worker,
    events: broadcast::Receiver<Stamped>,
}

impl Watched {
    /// A worker whose server is at `url`, with its data in a folder of that name.
    pub(crate) async fn start(url: &str, folder: &Path, name: &str, ttl_ms: u64) -> Self {
        let data_dir = folder.join(name);
        let mut config = WorkerConfig::new(name.parse().expect("a name"), data_dir.clone());
        (config.ttl_ms, config.wait_ms, config.free_bytes_min) = (ttl_ms, 5_000, 0);
        std::fs::create_dir_all(&data_dir).expect("made");
        let (runner, missing) = RenderRunner::find_tools(renderer(), &book(), &data_dir).await;
        assert!(missing.is_empty(), "{missing:?}");
        let parts = Components {
            connector: Arc::new(HttpConnector::new(url, None).expect("an address")),
            timer: Arc::new(BoottimeClock),
            entropy: Arc::new(OsEntropy),
            runner: Arc::new(runner),
            recipes: Arc::new(book()),
            disk: Arc::new(SystemDisk),
            events: Arc::new(NoEvents),
        };
        let worker = Worker::start(config, parts).await.expect("it starts");
        let events = worker.events();
        Self { worker, events }
    }

    /// The next event of that name.
    pub(crate) async fn event(&mut self, name: &str) -> Value {
        let next = async {
            loop {
                let event = self.events.recv().await.expect("it runs");
                let event = serde_json::to_value(event).expect("plain data");
                if event["event"] == name {
                    return event;
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.unwrap_or_else(|_| panic!("never: {name}"))
    }

    pub(crate) async fn end(mut self) {
        self.worker.hand_back();
        self.worker.finished().await;
    }
}

/// What is left of attempts in a worker's folder.
pub(crate) fn left(folder: &Path, name: &str) -> usize {
    ["scratch", "inputs"]
        .iter()
        .map(|part| std::fs::read_dir(folder.join(name).join(part)).expect("there").count())
        .sum()
}
