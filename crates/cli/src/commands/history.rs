//! `history`: a job's journal, and what it tells of faults.

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use palisade_api::wire::EventView;
use palisade_audit::{
    findings::Findings,
    own,
    read::Tally,
    report::{File, Report},
    timeline::Timeline,
};
use palisade_core::{JobId, history::Event};

use crate::{args::Common, diagnose::output as look, output};

use super::client;

/// Flags of `history`.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// The job's id.
    job: JobId,
    /// Tell what went wrong, to whom and why, instead of the entries: the report of `diagnose`,
    /// and its exit codes.
    #[arg(long)]
    findings: bool,
    /// Write the report to a file, as HTML with the picture in it.
    #[arg(long, value_name = "FILE", requires = "findings")]
    html: Option<PathBuf>,
    #[command(flatten)]
    look: look::LookArgs,
}

/// Flags of `timeline`.
#[derive(Debug, clap::Args)]
pub(crate) struct TimelineArgs {
    /// The job's id.
    job: JobId,
    /// Write the picture to a file too, as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    look: look::LookArgs,
}

/// Shows the journal of a job.
pub(crate) async fn run(args: HistoryArgs, common: Common) -> anyhow::Result<ExitCode> {
    let history = client(&common)?.history(&args.job.to_string()).await?;
    if args.findings {
        return tell(&args, &history.events, common.json);
    }
    if common.json {
        output::json(&history);
        return Ok(ExitCode::SUCCESS);
    }
    for entry in &history.events {
        show(&entry.event);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints one entry of the journal.
pub(super) fn show(event: &Event) {
    output::line(&format!("{}  {}", output::clock_time(event.at.0), event.what));
}

/// Draws a job's history.
pub(crate) async fn timeline(args: TimelineArgs, common: Common) -> anyhow::Result<ExitCode> {
    let history = client(&common)?.history(&args.job.to_string()).await?;
    let told = Told::of(&history.events);
    let name = args.job.to_string();
    let Some(timeline) = told.timelines.iter().find(|timeline| timeline.resource == name) else {
        bail!("timeline: {name} has not been granted to anybody yet");
    };
    look::timeline(&args.look, args.svg.as_deref(), timeline)?;
    Ok(ExitCode::SUCCESS)
}

fn tell(args: &HistoryArgs, events: &[EventView], json: bool) -> anyhow::Result<ExitCode> {
    let told = Told::of(events);
    let entries = told.findings.summary.events;
    let tally = Tally { lines: events.len() as u64, entries, ..Tally::default() };
    let files = [File { name: "journal".to_owned(), tally, skew: None }];
    let Told { findings, timelines } = &told;
    let report = Report { findings, files: &files, timelines };
    if let Some(path) = &args.html {
        look::html(path, &report)?;
    }
    look::report(&args.look, json, &report)?;
    Ok(ExitCode::from(u8::from(!findings.findings.is_empty())))
}

/// What a part of the journal tells.
struct Told {
    findings: Findings,
    timelines: Vec<Timeline>,
}

impl Told {
    fn of(events: &[EventView]) -> Self {
        let entries = || events.iter().map(|entry| (entry.position, &entry.event));
        let findings = own::diagnose(entries());
        let timelines = own::timelines(entries(), &findings.findings);
        Self { findings, timelines }
    }
}
