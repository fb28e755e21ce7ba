//! `history`: a job's journal.

use std::process::ExitCode;

use palisade_core::JobId;

use crate::{args::Common, output};

use super::client;

/// Flags of `history`.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// The job's id.
    job: JobId,
}

pub(crate) async fn run(args: HistoryArgs, common: Common) -> anyhow::Result<ExitCode> {
    let history = client(&common)?.history(&args.job.to_string()).await?;
    if common.json {
        output::json(&history);
        return Ok(ExitCode::SUCCESS);
    }
    for entry in &history.events {
        let at = output::clock_time(entry.event.at.0);
        output::line(&format!("{at}  {}", entry.event.what));
    }
    Ok(ExitCode::SUCCESS)
}
