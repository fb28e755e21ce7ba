//! `retry`: gives a job that is over another try.

use std::process::ExitCode;

use palisade_api::wire::RetryRequest;
use palisade_core::JobId;

use crate::{args::Common, output};

use super::{client, inputs::random_id};

/// Flags of `retry`.
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    /// The job's id.
    job: JobId,
    /// For a cancelled job: the submission to revive.
    #[arg(long, value_name = "NUMBER")]
    submission: Option<u64>,
}

pub(crate) async fn run(args: RetryArgs, common: Common) -> anyhow::Result<ExitCode> {
    let request = RetryRequest { submission: args.submission, request_id: Some(random_id()) };
    let answer = client(&common)?.retry(&args.job.to_string(), &request).await?;
    if common.json {
        output::json(&answer);
    } else {
        output::line(&format!("{}: {}", args.job, answer.state));
    }
    Ok(ExitCode::SUCCESS)
}
