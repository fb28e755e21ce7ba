//! `demo`: real exports on real workers, one of which is killed and two of which are paused.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use palisade_lab::demo::{self, DemoOptions, Report, SharedPlaces};

use crate::{
    args::Common,
    exit::{self, Usage},
    output,
};

/// Flags of `demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Where it runs and leaves the results; emptied first if an earlier demo made it.
    #[arg(long, default_value = "demo-output", value_name = "DIR")]
    dir: PathBuf,
    /// Seconds of video in the longest clip.
    #[arg(long, default_value_t = 16, value_name = "SECONDS",
          value_parser = clap::value_parser!(u32).range(8..=600))]
    seconds: u32,
    /// How many servers; more than one need a store and artefacts that they have in common.
    #[arg(long, default_value_t = 1, value_name = "NUMBER",
          value_parser = clap::value_parser!(u8).range(1..=9))]
    servers: u8,
    /// The store of several servers: a PostgreSQL database of its own.
    #[arg(long, value_name = "URL", requires = "artefacts")]
    store: Option<String>,
    /// Where the blobs of several servers live.
    #[arg(long, value_name = "URL", requires = "store")]
    artefacts: Option<String>,
}

impl DemoArgs {
    fn shared(&self) -> Result<Option<SharedPlaces>, Usage> {
        match (&self.store, &self.artefacts, self.servers) {
            (None, None, 1) => Ok(None),
            (Some(store), Some(artefacts), 2..) => Ok(Some(SharedPlaces {
                servers: self.servers.into(),
                store: store.clone(),
                artefacts: artefacts.clone(),
            })),
            (None, ..) => Err(Usage("servers: several need --store and --artefacts".to_owned())),
            _ => Err(Usage("servers: 1 is not allowed with --store; must be 2 to 9".to_owned())),
        }
    }
}

/// A file that marks a folder as an earlier demo's, so that nobody else's is ever emptied.
const MARK: &str = ".palisade-demo";

pub(crate) async fn run(args: DemoArgs, common: Common) -> anyhow::Result<ExitCode> {
    let shared = args.shared()?;
    prepare(&args.dir).with_context(|| format!("cannot use {}", args.dir.display()))?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let dir = args.dir.canonicalize()?;
    let options = DemoOptions { program, dir, seconds: args.seconds, shared };
    let mut tell = |text: &str| output::note(&format!("• {text}"));
    let report = demo::run(&options, &mut tell).await?;
    if common.json {
        output::json(&report);
    } else {
        show(&report);
    }
    for complaint in &report.complaints {
        output::complain(&format!("WRONG: {complaint}"));
    }
    let well = report.complaints.is_empty();
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn prepare(dir: &std::path::Path) -> anyhow::Result<()> {
    if dir.join(MARK).exists() {
        std::fs::remove_dir_all(dir)?;
    }
    std::fs::create_dir_all(dir)?;
    let empty = std::fs::read_dir(dir)?.next().is_none();
    anyhow::ensure!(empty, "the folder is not empty, and no demo made it");
    std::fs::write(dir.join(MARK), "made by palisade demo\n")?;
    Ok(())
}

fn show(report: &Report) {
    output::line("\nWhat happened, as the server's journal has it:\n");
    let start_ms = report.events.first().map_or(0, |entry| entry.event.at.0);
    for entry in &report.events {
        let since = entry.event.at.0.saturating_sub(start_ms);
        let seconds = format!("{}.{} s", since / 1_000, since % 1_000 / 100);
        output::line(&format!("{seconds:>8}  {:<4} {}", entry.event.subject, entry.event.what));
    }
    output::line("\nWho tried:\n");
    let mut rows = output::table(["job", "recipe", "worker", "token", "outcome", "held for"]);
    for job in &report.jobs {
        for attempt in &job.attempts {
            let end_ms = attempt.closed_at_ms.unwrap_or(job.now_ms);
            rows.add_row([
                job.id.clone(),
                job.recipe.clone(),
                attempt.worker.clone(),
                attempt.token.to_string(),
                attempt.outcome.clone(),
                output::span(end_ms.saturating_sub(attempt.granted_at_ms)),
            ]);
        }
    }
    output::line(&rows.to_string());
    output::line("\nWhat was refused:\n");
    for entry in report.refused() {
        output::line(&format!("  {}  {}", entry.event.subject, entry.event.what));
    }
    let done = report.jobs.iter().filter(|job| job.completion.is_some()).count();
    output::line(&format!(
        "\n{done} of {} exports are there, each exactly once: {}",
        report.jobs.len(),
        report.folder.display()
    ));
}
