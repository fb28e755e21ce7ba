//! `cancel`: withdraws a submission.

use std::process::ExitCode;

use palisade_api::wire::CancelRequest;
use palisade_core::JobId;

use crate::{args::Common, output};

use super::{client, inputs::random_id};

/// Flags of `cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct CancelArgs {
    /// The job's id.
    job: JobId,
    /// The submission to withdraw; may be left out where there is one only.
    #[arg(long, value_name = "NUMBER", conflicts_with = "all")]
    submission: Option<u64>,
    /// Withdraw all of them, other people's too.
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(args: CancelArgs, common: Common) -> anyhow::Result<ExitCode> {
    let request =
        CancelRequest { submission: args.submission, all: args.all, request_id: Some(random_id()) };
    let answer = client(&common)?.cancel(&args.job.to_string(), &request).await?;
    if common.json {
        output::json(&answer);
    } else {
        let count = answer.withdrawn;
        output::line(&format!("{}: {count} submission(s) withdrawn, {}", args.job, answer.state));
    }
    Ok(ExitCode::SUCCESS)
}
