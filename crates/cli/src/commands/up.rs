//! `up`: a server and workers in one process. The same, for a single export, is `export`'s.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context;
use palisade_api::Client;
use palisade_server::Server;
use palisade_worker::{Worker, events::NoEvents};

use crate::{args::Common, logs, output, signals::EndSignals};

use super::{
    artefacts::ArtefactArgs,
    serve::{self, Keep, PlaceArgs, ServeArgs, Serving, WebhookPlaces},
    worker::{self, HowArgs, Place, ServerAddress},
};

/// Flags of `up`.
#[derive(Debug, clap::Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    serve: ServeArgs,
    /// How many workers.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) async fn run(args: UpArgs, common: Common) -> anyhow::Result<ExitCode> {
    logs::start("info");
    let token = super::token(&common)?;
    let token = token.as_deref();
    let mut signals = EndSignals::listen()?;
    let serving = serve::start(&args.serve).await?;
    let workers =
        start_workers(&serving, &args.serve.place, (args.workers, &args.how), token).await?;
    let server = serving.server;
    output::note(&format!("palisade: serving at {}, {} worker(s)", server.url(), workers.len()));
    signals.next().await;
    tokio::select! {
        () = finish(workers) => {}
        // A second signal: what runs is handed back when its worker is dropped, after its session.
        () = signals.next() => {}
    }
    server.stop().await;
    Ok(ExitCode::SUCCESS)
}

async fn finish(mut workers: Vec<Worker>) {
    workers.iter().for_each(Worker::drain);
    for worker in &mut workers {
        worker.finished().await;
    }
}

async fn start_workers(
    serving: &Serving,
    place: &PlaceArgs,
    (count, how): (u16, &HowArgs),
    token: Option<&str>,
) -> anyhow::Result<Vec<Worker>> {
    // A server that asks for a token lets its own workers in with one of them.
    let (url, mut workers) = (serving.server.url(), Vec::new());
    let address = ServerAddress { url: &url, token, blobs: serving.shared.as_ref() };
    for number in 1..=count {
        let name = format!("local-{number}").parse().context("a worker's name")?;
        let data = place.data.join("workers").join(number.to_string());
        let own = Place { data: &data, recipes: place.recipes.as_deref() };
        let events = Arc::new(NoEvents);
        workers.push(worker::start(address, name, &own, how, events).await?);
    }
    Ok(workers)
}

/// Flags of an export that runs in this process.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EmbeddedOptions {
    /// Without a server: where to keep what is rendered, so that it is not rendered again. A
    /// temporary folder if not given.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Without a server: a folder of TOML files with recipes of your own.
    #[arg(long, value_name = "DIR")]
    recipes: Option<PathBuf>,
}

/// A server and a worker in this process, for one export.
pub(crate) struct Embedded {
    client: Client,
    server: Server,
    worker: Worker,
    /// Removed when dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl Embedded {
    /// Starts them, on a free port of loopback.
    pub(crate) async fn start(options: &EmbeddedOptions) -> anyhow::Result<Self> {
        logs::start("error");
        let (data, temporary) = if let Some(data) = &options.data {
            (data.clone(), None)
        } else {
            let folder = tempfile::Builder::new().prefix("palisade-").tempdir();
            let folder = folder.context("cannot make a temporary folder")?;
            (folder.path().to_owned(), Some(folder))
        };
        let place = PlaceArgs { data, recipes: options.recipes.clone() };
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let args = ServeArgs {
            place,
            store: None,
            listen,
            tokens: None,
            hosts: Vec::new(),
            artefacts: ArtefactArgs::default(),
            webhooks: WebhookPlaces::default(),
            keep_history: Keep::default(),
        };
        let serving = serve::start(&args).await?;
        let how = HowArgs::default();
        let mut workers = start_workers(&serving, &args.place, (1, &how), None).await?;
        let worker = workers.pop().expect("one was started");
        let server = serving.server;
        let client = Client::new(&server.url())?;
        Ok(Self { client, server, worker, _temporary: temporary })
    }

    /// A client of the server.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Ends both: what still runs is ended and handed back.
    pub(crate) async fn end(mut self) {
        self.worker.hand_back();
        self.worker.finished().await;
        self.server.stop().await;
    }
}
