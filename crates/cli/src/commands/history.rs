//! `history` and `timeline`: the journal of a job or of a lock, what it tells of faults, and its
//! picture.

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use palisade_api::wire::{EventView, HistoryView};
use palisade_audit::{
    findings::Findings,
    own,
    read::Tally,
    report::{File, Report},
    timeline::Timeline,
};
use palisade_core::{
    JobId, LockName,
    history::{Event, Subject},
};

use crate::{args::Common, diagnose::output as look, output};

use super::client;

/// Whose history.
#[derive(Debug, clap::Args)]
struct SubjectArgs {
    /// The job's id.
    #[arg(required_unless_present = "lock")]
    job: Option<JobId>,
    /// Instead of a job: the lock of this name, with what its holders wrote.
    #[arg(long, value_name = "NAME", conflicts_with = "job")]
    lock: Option<LockName>,
    /// Of a lock: only the newest entries, at most so many [default: 10000, 1000 of a picture].
    #[arg(long, value_name = "N", requires = "lock")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
}

/// How many entries of a lock are shown when no number is asked for.
const LISTED: u32 = 10_000;
/// The same, of a picture.
const DRAWN: u32 = 1_000;

/// Flags of `history`.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    subject: SubjectArgs,
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
    #[command(flatten)]
    subject: SubjectArgs,
    /// Write the picture to a file too, as SVG.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    look: look::LookArgs,
}

impl SubjectArgs {
    async fn history(&self, common: &Common, usual: u32) -> anyhow::Result<HistoryView> {
        let client = client(common)?;
        let limit = self.limit.unwrap_or(usual);
        Ok(match (&self.lock, &self.job) {
            (Some(lock), _) => client.lock_history(lock.as_str(), limit).await?,
            (None, Some(job)) => client.history(&job.to_string()).await?,
            (None, None) => unreachable!("one of the two is required"),
        })
    }

    /// What it is called among the resources of an analysis.
    fn resource(&self) -> String {
        match (&self.lock, &self.job) {
            (Some(lock), _) => own::lock_resource(lock),
            (None, Some(job)) => job.to_string(),
            (None, None) => unreachable!("one of the two is required"),
        }
    }
}

/// Shows the journal of a job or of a lock.
pub(crate) async fn run(args: HistoryArgs, common: Common) -> anyhow::Result<ExitCode> {
    let history = args.subject.history(&common, LISTED).await?;
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

/// Prints one entry of the journal; of an object, which one is not said elsewhere.
pub(super) fn show(event: &Event) {
    let of = match &event.subject {
        Subject::Object(key) => format!("{key}: "),
        Subject::Job(_) | Subject::Lock(_) => String::new(),
    };
    output::line(&format!("{}  {of}{}", output::clock_time(event.at.0), event.what));
}

/// Draws the history of a job or of a lock.
pub(crate) async fn timeline(args: TimelineArgs, common: Common) -> anyhow::Result<ExitCode> {
    let history = args.subject.history(&common, DRAWN).await?;
    let told = Told::of(&history.events);
    let name = args.subject.resource();
    let Some(timeline) = told.timelines.iter().find(|timeline| timeline.resource == name) else {
        bail!("timeline: {name} has not been granted to anybody yet");
    };
    look::timeline(&args.look, common.json, args.svg.as_deref(), timeline)?;
    if common.json {
        return Ok(ExitCode::SUCCESS);
    }
    // Granted beside a live attempt: its lease is its own, and so is its picture.
    let backups = told.timelines.iter().filter(|one| own::is_backup_of(&one.resource, &name));
    for backup in backups {
        output::line(&backup.resource);
        look::timeline(&args.look, false, None, backup)?;
    }
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
