//! `worker`: claims jobs of a server and renders them.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;
use palisade_artefacts::{Blobs, Location};
use palisade_core::{Invalid, WorkerName};
use palisade_worker::{
    Components, Worker, WorkerConfig,
    clock::BoottimeClock,
    control_plane::HttpConnector,
    disk::SystemDisk,
    entropy::OsEntropy,
    events::{EventSink, NoEvents, Stamped},
    process::NannyCommand,
    recipes,
    render::Renderer,
    render_runner::RenderRunner,
};

use crate::{args::Common, exit::Usage, logs, output, signals::EndSignals, span::Span};

use super::artefacts::environment;

/// Flags of `worker`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkerArgs {
    /// What it is called; the machine's name if not given.
    #[arg(long, value_name = "NAME")]
    name: Option<WorkerName>,
    /// Its data directory: scratch, inputs, a lock. One process owns it.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A folder of TOML files with an operator's own recipes, as the server has them.
    #[arg(long, value_name = "DIR")]
    recipes: Option<PathBuf>,
    /// Bring outputs to where the server's blobs live, without the server in between: as the
    /// server's own --artefacts, or `auto` to ask the server. Credentials come from this worker's
    /// environment.
    #[arg(long, value_name = "URL", env = "PALISADE_WORKER_ARTEFACTS")]
    artefacts: Option<String>,
    #[command(flatten)]
    how: HowArgs,
    /// Print what happens as JSON lines on standard output.
    #[arg(long)]
    events: bool,
}

/// How a worker works.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HowArgs {
    /// How many renders may run at a time.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) slots: usize,
    /// How long a lease is kept without renewal: the longest that a crash of the machine stalls a
    /// job. A killed worker's jobs are free in seconds, whatever the ttl.
    #[arg(long, default_value = "30s", value_name = "SPAN")]
    pub(crate) ttl: Span,
    /// How long a render is kept frozen while nobody confirms its lease.
    #[arg(long, default_value = "5m", value_name = "SPAN")]
    pub(crate) doubt_grace: Span,
    /// How long renders may go on after SIGTERM; until they are done if not given.
    #[arg(long, value_name = "SPAN")]
    pub(crate) drain_for: Option<Span>,
    /// How much of the disk is left free, in MiB.
    #[arg(long, default_value_t = 256, value_name = "MIB")]
    pub(crate) keep_free: u64,
}

impl Default for HowArgs {
    fn default() -> Self {
        let (ttl, doubt_grace) = (Span::seconds(30), Span::seconds(300));
        Self { slots: 1, ttl, doubt_grace, drain_for: None, keep_free: 256 }
    }
}

/// Events as JSON lines on standard output.
#[derive(Debug)]
struct Lines;

impl EventSink for Lines {
    fn write(&self, event: &Stamped) {
        output::line(&serde_json::to_string(event).expect("events are plain data"));
    }
}

pub(crate) async fn run(args: WorkerArgs, common: Common) -> anyhow::Result<ExitCode> {
    logs::start("info");
    let Some(url) = &common.server else {
        let text = "server: none was named; give --server URL or set PALISADE_SERVER";
        return Err(Usage(text.to_owned()).into());
    };
    let name = match args.name {
        Some(name) => name,
        None => machine_name()?,
    };
    let events: Arc<dyn EventSink> = if args.events { Arc::new(Lines) } else { Arc::new(NoEvents) };
    let place = Place { data: &args.data, recipes: args.recipes.as_deref() };
    let mut signals = EndSignals::listen()?;
    let token = super::token(&common)?;
    let blobs = match &args.artefacts {
        Some(text) => Some(shared_blobs(text, &common).await?),
        None => None,
    };
    let server = ServerAddress { url, token: token.as_deref(), blobs: blobs.as_ref() };
    let mut worker = start(server, name, &place, &args.how, events).await?;
    signals.next().await;
    worker.drain();
    tokio::select! {
        () = worker.finished() => return Ok(ExitCode::SUCCESS),
        () = signals.next() => worker.hand_back(),
    }
    worker.finished().await;
    Ok(ExitCode::SUCCESS)
}

/// Where a worker's own things are.
pub(crate) struct Place<'path> {
    pub(crate) data: &'path Path,
    pub(crate) recipes: Option<&'path Path>,
}

/// The server that a worker works for.
#[derive(Clone, Copy)]
pub(crate) struct ServerAddress<'text> {
    pub(crate) url: &'text str,
    pub(crate) token: Option<&'text str>,
    /// Where its blobs live, if this worker brings outputs there itself.
    pub(crate) blobs: Option<&'text Arc<dyn Blobs>>,
}

/// Opens the place where the server's blobs live.
async fn shared_blobs(text: &str, common: &Common) -> anyhow::Result<Arc<dyn Blobs>> {
    let text = if text == "auto" {
        let told = super::client(common)?.artefacts().await?.url;
        told.context("artefacts: the server keeps them to itself; start it with --artefacts URL")?
    } else {
        text.to_owned()
    };
    let location: Location = text.parse().map_err(|error: Invalid| Usage(error.to_string()))?;
    Ok(location.open(&environment()).await?.blobs)
}

/// Starts a worker of that server.
pub(crate) async fn start(
    server: ServerAddress<'_>,
    name: WorkerName,
    place: &Place<'_>,
    how: &HowArgs,
    events: Arc<dyn EventSink>,
) -> anyhow::Result<Worker> {
    std::fs::create_dir_all(place.data)
        .with_context(|| format!("data: cannot make {}", place.data.display()))?;
    // Tools run in folders of their own, where a relative path would lead elsewhere.
    let data = place
        .data
        .canonicalize()
        .with_context(|| format!("data: cannot resolve {}", place.data.display()))?;
    let book = recipes::load(place.recipes)?;
    let nanny = NannyCommand::this_program(&[crate::NANNY]);
    let renderer = Renderer::new(nanny, Arc::new(BoottimeClock));
    let (runner, missing) = RenderRunner::find_tools(renderer, &book, &data).await;
    for (tool, error) in missing {
        output::note(&format!(
            "palisade: {tool} is not to be had, its recipes are not offered: \
                               {error}"
        ));
    }
    let config = WorkerConfig {
        slots: how.slots,
        ttl_ms: how.ttl.ms(),
        doubt_grace_ms: how.doubt_grace.ms(),
        drain_for_ms: how.drain_for.map(Span::ms),
        free_bytes_min: how.keep_free.saturating_mul(1 << 20),
        ..WorkerConfig::new(name, data)
    };
    let mut connector = HttpConnector::new(server.url, server.token)?;
    if let Some(blobs) = server.blobs {
        connector = connector.with_blobs(Arc::clone(blobs));
    }
    let parts = Components {
        connector: Arc::new(connector),
        timer: Arc::new(BoottimeClock),
        entropy: Arc::new(OsEntropy),
        runner: Arc::new(runner),
        recipes: Arc::new(book),
        disk: Arc::new(SystemDisk),
        events,
    };
    Ok(Worker::start(config, parts).await?)
}

fn machine_name() -> anyhow::Result<WorkerName> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.parse().context("name: this machine's name does not serve; give --name NAME")
}
