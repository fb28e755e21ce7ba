//! `locks`: who holds what, and who waits.

use std::process::ExitCode;

use palisade_api::{Client, wire::LockView};
use palisade_core::LockName;

use crate::{args::Common, output};

use super::client;

/// Flags of `locks`.
#[derive(Debug, clap::Args)]
pub(crate) struct LocksArgs {
    /// Only those whose names begin so.
    #[arg(default_value = "")]
    prefix: String,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
    /// Where the page begins: the last page's `next_cursor`.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<LockName>,
}

pub(crate) async fn run(args: LocksArgs, common: Common) -> anyhow::Result<ExitCode> {
    let cursor = args.cursor.as_ref().map(LockName::as_str);
    let list = client(&common)?.locks_page(&args.prefix, cursor, args.limit).await?;
    if common.json {
        output::json(&list);
        return Ok(ExitCode::SUCCESS);
    }
    show(&list.locks);
    if let Some(cursor) = list.next_cursor {
        output::note(&format!("more: --cursor {cursor}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// One lock, as `lock --inspect` shows it.
pub(crate) async fn inspect(
    client: &Client,
    name: &LockName,
    common: &Common,
) -> anyhow::Result<ExitCode> {
    let lock = client.lock(name.as_str()).await?;
    if common.json {
        output::json(&lock);
    } else {
        show(&[lock]);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(locks: &[LockView]) {
    let mut table = output::table(["lock", "fence", "token", "holder", "ttl", "waiting"]);
    for lock in locks {
        let held = lock.held.as_ref();
        let of_holder = |show: &dyn Fn(&palisade_api::wire::LockHeldView) -> String| {
            held.map_or_else(|| "-".to_owned(), show)
        };
        table.add_row([
            lock.name.clone(),
            lock.fence.to_string(),
            of_holder(&|held| held.token.to_string()),
            of_holder(&|held| held.holder.clone()),
            of_holder(&|held| output::span(held.ttl_ms)),
            lock.waiters.len().to_string(),
        ]);
    }
    output::line(&table.to_string());
}
