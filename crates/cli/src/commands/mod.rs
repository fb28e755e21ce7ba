//! One file a verb.

pub(crate) mod admin;
pub(crate) mod artefacts;
pub(crate) mod audit;
pub(crate) mod cancel;
pub(crate) mod demo;
pub(crate) mod events;
pub(crate) mod explore;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod inputs;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod lock;
pub(crate) mod locks;
pub(crate) mod object;
pub(crate) mod recipes;
mod records;
pub(crate) mod retry;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod sql_guard;
pub(crate) mod submit;
pub(crate) mod up;
pub(crate) mod wait;
pub(crate) mod webhooks;
pub(crate) mod worker;
pub(crate) mod workers;

use std::process::ExitCode;

use anyhow::Context;
use palisade_api::Client;

use crate::{
    args::{Args, Common, Verb},
    exit::Usage,
};

/// Runs the verb.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let common = args.common;
    runtime()?.block_on(run_async(args.verb, common))
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

async fn run_async(verb: Verb, common: Common) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Up(args) => up::run(args, common).await,
        Verb::Serve(args) => serve::run(args).await,
        Verb::Worker(args) => worker::run(args, common).await,
        Verb::Export(args) => export::run(args, common).await,
        Verb::Submit(args) => submit::run(args, common).await,
        Verb::Jobs(args) => jobs::run(args, common).await,
        Verb::Job(args) => job::run(args, common).await,
        Verb::Wait(args) => wait::run(args, common).await,
        Verb::Get(args) => get::run(args, common).await,
        Verb::Cancel(args) => cancel::run(args, common).await,
        Verb::Retry(args) => retry::run(args, common).await,
        Verb::Recipes(args) => recipes::run(&args, common.json),
        Verb::History(args) => history::run(args, common).await,
        Verb::Timeline(args) => history::timeline(args, common).await,
        Verb::Events(args) => events::run(args, common).await,
        Verb::Workers => workers::run(common).await,
        Verb::Lock(args) => lock::run(args, common).await,
        Verb::Locks(args) => locks::run(args, common).await,
        Verb::Object(args) => object::run(args, common).await,
        Verb::Webhooks(args) => webhooks::run(args, common).await,
        Verb::Audit(args) => audit::run(args, common).await,
        Verb::Diagnose(args) => {
            let args = args.with_json(common.json);
            crate::diagnose::run(&args, &common).await
        }
        Verb::SqlGuard(args) => Ok(sql_guard::run(&args)),
        Verb::Demo(args) => demo::run(args, common).await,
        Verb::Simulate(args) => simulate::run(&args, common.json),
        Verb::Explore(args) => explore::run(&args, common.json),
        Verb::Admin(args) => admin::run(args, common.json).await,
    }
}

/// The client of the server that was named.
pub(crate) fn client(common: &Common) -> anyhow::Result<Client> {
    let Some(url) = &common.server else {
        let text = "server: none was named; give --server URL or set PALISADE_SERVER";
        return Err(Usage(text.to_owned()).into());
    };
    Ok(match token(common)? {
        Some(token) => Client::with_token(url, &token)?,
        None => Client::new(url)?,
    })
}

/// The token that the server asks for: the first line of its file.
pub(crate) fn token(common: &Common) -> anyhow::Result<Option<String>> {
    let Some(path) = &common.token_file else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("token-file: cannot read {}", path.display()))?;
    let token = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let missing = || Usage(format!("token-file: {} has no token", path.display()));
    Ok(Some(token.ok_or_else(missing)?.to_owned()))
}
