//! `admin`: what operators set right by hand.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context;
use palisade_store::{
    postgres::{self, Address, PostgresOptions},
    sqlite,
};

use crate::{edge::SystemClock, exit::Usage, output};

/// Flags of `admin`.
#[derive(Debug, clap::Args)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    what: What,
}

/// What to set right.
#[derive(Debug, clap::Subcommand)]
enum What {
    /// The store-wide counter, from which all tokens and submission numbers are drawn.
    Tokens {
        #[command(subcommand)]
        verb: TokensVerb,
    },
}

/// What to do with the counter.
#[derive(Debug, clap::Subcommand)]
enum TokensVerb {
    /// Raise it, after a restore of an older copy that no server could notice: so that no number
    /// which was answered after the copy was made is drawn a second time.
    // Spelled out: it would name flags that every verb takes, and this one does not use.
    #[command(override_usage = "palisade admin tokens raise [--by N] <--store URL|--data DIR>")]
    Raise(RaiseArgs),
}

/// Flags of `admin tokens raise`.
#[derive(Debug, clap::Args)]
struct RaiseArgs {
    /// The PostgreSQL that keeps the records. There must be a store in it.
    #[arg(
        long,
        env = "PALISADE_STORE",
        value_name = "URL",
        hide_env_values = true,
        required_unless_present = "data"
    )]
    store: Option<String>,
    /// The data directory that keeps the records. There must be a store in it, and no server may be
    /// using it.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// By how much: at most half of the numbers that are left. Servers that notice a loss by
    /// themselves jump by 4294967296.
    #[arg(long, default_value_t = postgres::JUMP, value_name = "N")]
    by: u64,
}

pub(crate) async fn run(args: AdminArgs, json: bool) -> anyhow::Result<ExitCode> {
    let What::Tokens { verb: TokensVerb::Raise(args) } = args.what;
    let standing = raise(args).await?;
    if json {
        output::json(&serde_json::json!({ "counter": standing }));
    } else {
        output::line(&format!("the counter stands at {standing}"));
    }
    Ok(ExitCode::SUCCESS)
}

async fn raise(args: RaiseArgs) -> anyhow::Result<u64> {
    let clock = Arc::new(SystemClock::new());
    if args.store.is_some() && args.data.is_some() {
        let text = "--store (or PALISADE_STORE) and --data name two stores; name the one to raise";
        return Err(Usage(text.to_owned()).into());
    }
    if let Some(url) = &args.store {
        let options = PostgresOptions::new(Address::parse(url)?, clock);
        return Ok(postgres::raise_tokens(&options, args.by).await?);
    }
    let data = args.data.context("one of --store and --data is given")?;
    let raised = tokio::task::spawn_blocking(move || {
        sqlite::raise_tokens(&data, args.by, palisade_core::clock::Clock::now(&*clock))
    });
    Ok(raised.await.context("opening the store panicked")??.get())
}
