//! `serve`: a server.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use palisade_artefacts::Blobs;
use palisade_core::Retention;
use palisade_server::{AllowedAddresses, Network, Server, ServerConfig, ServerParts, Tokens};
use palisade_worker::{entropy::OsEntropy, recipes};

use crate::{logs, output, signals::EndSignals, span::Span};

use super::{artefacts::ArtefactArgs, records::Records};

/// Flags of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// A PostgreSQL that keeps the records instead of the data directory, and that many servers may
    /// share: `postgres://USER@HOST/DATABASE`, or `postgres:///DATABASE?host=/SOCKET/FOLDER`.
    #[arg(long, env = "PALISADE_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// Where to listen. Loopback unless told otherwise.
    #[arg(long, default_value = "127.0.0.1:7070", value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// A file of tokens, one a line; requests must then bring one of them.
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) artefacts: ArtefactArgs,
    /// A name under which clients address this server, where it is no address; may be repeated.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) webhooks: WebhookPlaces,
    /// How long the journal is kept, such as 90d, or `forever`. What tells of live jobs is kept.
    #[arg(long, value_name = "SPAN", default_value = "90d", value_parser = parse_keep)]
    pub(crate) keep_history: Keep,
}

/// Where notifications may go, beside public addresses.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct WebhookPlaces {
    /// Let webhooks reach every address, this machine's and its networks' own included.
    #[arg(long)]
    allow_private_webhooks: bool,
    /// Let webhooks reach a network that is not public, such as 10.0.0.0/8; may be repeated.
    #[arg(long = "webhook-allow", value_name = "CIDR")]
    webhook_allow: Vec<Network>,
}

impl WebhookPlaces {
    fn allowed(&self) -> AllowedAddresses {
        let networks = self.webhook_allow.clone();
        AllowedAddresses { all: self.allow_private_webhooks, networks }
    }
}

/// For how long history is kept; none is for ever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep(pub(crate) Option<Retention>);

impl Default for Keep {
    fn default() -> Self {
        Self(Some(Retention::default()))
    }
}

fn parse_keep(text: &str) -> Result<Keep, palisade_core::Invalid> {
    if text == "forever" {
        return Ok(Keep(None));
    }
    let span: Span = text.parse()?;
    Retention::of_ms(span.ms()).map(Some).map(Keep)
}

/// Where a server's records, blobs and recipes are.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PlaceArgs {
    /// The data directory; one process owns it.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// A folder of TOML files with an operator's own recipes, beside the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) recipes: Option<PathBuf>,
}

/// A server that runs.
pub(crate) struct Serving {
    pub(crate) server: Server,
    /// The blobs, if workers of this process may write to them past the server.
    pub(crate) shared: Option<Arc<dyn Blobs>>,
}

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    logs::start("info");
    // Before anybody is told that it serves; and a database that does not answer must not keep it.
    let mut signals = EndSignals::listen()?;
    let Serving { server, .. } = tokio::select! {
        started = start(&args) => started?,
        () = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    output::note(&format!("palisade: serving at {}", server.url()));
    signals.next().await;
    let finished = server.stop().await;
    Ok(if finished { ExitCode::SUCCESS } else { ExitCode::from(crate::exit::FAILED) })
}

/// Opens what is in the data directory, and serves it.
pub(crate) async fn start(args: &ServeArgs) -> anyhow::Result<Serving> {
    let tokens = args.tokens.as_deref().map(Tokens::read).transpose()?;
    let book = recipes::load(args.place.recipes.as_deref())?;
    let records = Records::open(args.store.as_deref(), args.place.data.clone()).await?;
    let opened = args.artefacts.open(&args.place.data).await?;
    records.bind(&opened, args.artefacts.moved()).await?;
    let config = ServerConfig {
        listen: args.listen,
        hosts: args.hosts.clone(),
        tokens,
        webhook_addresses: args.webhooks.allowed(),
        keep_history: args.keep_history.0,
        ..args.artefacts.configure(ServerConfig::default())?
    };
    let parts = ServerParts {
        store: records.store(),
        blobs: Arc::clone(&opened.blobs),
        recipes: book,
        entropy: Arc::new(OsEntropy),
    };
    let server = Server::start(config, parts).await?;
    let shared = args.artefacts.shared()?.map(|_| opened.blobs);
    Ok(Serving { server, shared })
}
