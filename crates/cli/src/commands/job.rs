//! `job`: shows one job.

use std::process::ExitCode;

use palisade_core::JobId;

use crate::{args::Common, output};

use super::client;

/// Flags of `job`.
#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// The job's id.
    job: JobId,
}

pub(crate) async fn run(args: JobArgs, common: Common) -> anyhow::Result<ExitCode> {
    let job = client(&common)?.job(&args.job.to_string()).await?;
    if common.json {
        output::json(&job);
    } else {
        output::job_details(&job);
    }
    Ok(ExitCode::SUCCESS)
}
