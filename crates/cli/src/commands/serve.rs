//! `serve`: a server.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context;
use palisade_artefacts::LocalBlobs;
use palisade_server::{Server, ServerConfig, ServerParts, Tokens};
use palisade_store::{
    Store,
    postgres::{Address, PostgresOptions, PostgresStore},
    sqlite::SqliteStore,
};
use palisade_worker::{entropy::OsEntropy, recipes};

use crate::{edge::SystemClock, logs, output, signals};

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
    /// A name under which clients address this server, where it is no address; may be repeated.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
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

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    logs::start("info");
    let server = start(&args).await?;
    output::note(&format!("palisade: serving at {}", server.url()));
    signals::asked_to_end().await?;
    let finished = server.stop().await;
    Ok(if finished { ExitCode::SUCCESS } else { ExitCode::from(crate::exit::FAILED) })
}

/// Opens what is in the data directory, and serves it.
pub(crate) async fn start(args: &ServeArgs) -> anyhow::Result<Server> {
    let tokens = args.tokens.as_deref().map(Tokens::read).transpose()?;
    let book = recipes::load(args.place.recipes.as_deref())?;
    let store = open_store(args).await?;
    let blobs = LocalBlobs::open(args.place.data.join("blobs")).await?;
    let config = ServerConfig {
        listen: args.listen,
        hosts: args.hosts.clone(),
        tokens,
        ..ServerConfig::default()
    };
    let parts =
        ServerParts { store, blobs: Arc::new(blobs), recipes: book, entropy: Arc::new(OsEntropy) };
    Ok(Server::start(config, parts).await?)
}

/// Opens the store. That migrates it and reads what is leased: it may take a moment.
async fn open_store(args: &ServeArgs) -> anyhow::Result<Arc<dyn Store>> {
    let clock = Arc::new(SystemClock::new());
    if let Some(url) = &args.store {
        let options = PostgresOptions::new(Address::parse(url)?, clock);
        return Ok(Arc::new(PostgresStore::open(options).await?));
    }
    let data = args.place.data.clone();
    // It blocks.
    let store = tokio::task::spawn_blocking(move || SqliteStore::open(&data, clock));
    Ok(Arc::new(store.await.context("opening the store panicked")??))
}
