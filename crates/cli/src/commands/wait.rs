//! `wait`: waits until a job is over.

use std::{process::ExitCode, time::Duration};

use palisade_api::wire::JobView;
use palisade_core::{JobId, clock::Clock};

use crate::{args::Common, edge::SystemClock, exit, output};

use super::client;

/// Flags of `wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct WaitArgs {
    /// The job's id.
    job: JobId,
    /// At most so many seconds; for ever if not given.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

/// How long one long poll takes.
const POLL: Duration = Duration::from_secs(30);
/// How long to wait before a server that is away is asked once more.
const AGAIN: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: WaitArgs, common: Common) -> anyhow::Result<ExitCode> {
    let client = client(&common)?;
    let clock = SystemClock::new();
    let until = args.timeout.map(|seconds| clock.now().plus_ms(seconds * 1_000));
    let id = args.job.to_string();
    let mut job = client.job(&id).await?;
    loop {
        if is_over(&job) {
            return Ok(tell(&job, common.json));
        }
        if until.is_some_and(|until| clock.now() >= until) {
            output::complain(&format!("palisade: {} is still {}", job.id, job.state));
            return Ok(ExitCode::from(exit::TIMED_OUT));
        }
        let left = until.map_or(POLL, |until| Duration::from_millis(until.since_ms(clock.now())));
        match client.wait(&id, left.min(POLL)).await {
            Ok(seen) => job = seen,
            // It was there: a server that is away for a while is waited for.
            Err(error) if error.is_unconfirmed() => tokio::time::sleep(left.min(AGAIN)).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether nobody but a retry moves it on.
pub(crate) fn is_over(job: &JobView) -> bool {
    matches!(job.state.as_str(), "complete" | "failed" | "cancelled")
}

fn tell(job: &JobView, json: bool) -> ExitCode {
    if json {
        output::json(job);
    } else {
        output::job_details(job);
    }
    if job.state == "complete" { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) }
}
