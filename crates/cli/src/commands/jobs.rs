//! `jobs`: lists jobs.

use std::process::ExitCode;

use crate::{args::Common, output};

use super::client;

/// Flags of `jobs`.
#[derive(Debug, clap::Args)]
pub(crate) struct JobsArgs {
    /// Only in this state: queued, running, complete, failed, cancelled.
    #[arg(long, value_name = "STATE")]
    state: Option<palisade_core::job::JobState>,
    /// Only of this recipe.
    #[arg(long, value_name = "NAME")]
    recipe: Option<palisade_core::RecipeName>,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u32,
    /// Where the page begins: the last page's `next_cursor`.
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<palisade_core::JobId>,
}

pub(crate) async fn run(args: JobsArgs, common: Common) -> anyhow::Result<ExitCode> {
    let mut query = format!("limit={}", args.limit);
    // Names have no character that a query string would have to escape.
    query += &args.state.map(|state| format!("&state={state}")).unwrap_or_default();
    query += &args.recipe.map(|recipe| format!("&recipe={recipe}")).unwrap_or_default();
    query += &args.cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
    let list = client(&common)?.jobs(&query).await?;
    if common.json {
        output::json(&list);
        return Ok(ExitCode::SUCCESS);
    }
    output::job_table(&list.jobs);
    if let Some(cursor) = list.next_cursor {
        output::note(&format!("more: --cursor {cursor}"));
    }
    Ok(ExitCode::SUCCESS)
}
