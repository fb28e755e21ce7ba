//! The own history: the journal of a server, or of a data directory, and the jobs that wait.

use std::path::PathBuf;
use std::process::ExitCode;

use palisade_api::{Client, EventsFrom};
use palisade_audit::Entry;
use palisade_audit::findings::{Analyser, Findings};
use palisade_audit::own::{self, Queue, QueuedJob, Translator};
use palisade_audit::read::Tally;
use palisade_audit::report::File;
use palisade_audit::timeline::{Collector, Timeline};
use palisade_core::job::{Job, JobState};
use palisade_core::{Timestamp, history::Event};
use palisade_store::{Snapshot as _, sqlite::SqliteSnapshot};

use super::{DiagnoseArgs, exit_code, show, wanted_resources};
use crate::args::Common;
use crate::commands;

/// How many jobs are asked for at once.
const JOBS_AT_ONCE: usize = 500;

/// Where the journal is.
pub(super) enum Source {
    Server(Client),
    Folder(PathBuf),
}

/// The source that the arguments name, if they name one.
pub(super) fn source(args: &DiagnoseArgs, common: &Common) -> anyhow::Result<Option<Source>> {
    if let Some(folder) = &args.data {
        return Ok(Some(Source::Folder(folder.clone())));
    }
    if args.own {
        return Ok(Some(Source::Server(commands::client(common)?)));
    }
    Ok(None)
}

/// Diagnoses the own history.
pub(super) async fn run(args: &DiagnoseArgs, source: &Source) -> anyhow::Result<ExitCode> {
    let mut analyser = Analyser::new(own::settings());
    let mut entries = 0;
    let mut now = Timestamp(0);
    source
        .read(
            &mut |event| {
                entries += 1;
                now = now.max(event.at);
            },
            &mut |entry| analyser.push(entry),
        )
        .await?;
    let mut findings = analyser.finish();
    let (queue, jobs_now) = source.queue().await?;
    let waits = queue.finish(now.max(jobs_now));
    add(&mut findings, waits);
    let timelines = draw(args, source, &findings).await?;
    let told = findings.summary.events;
    let tally = Tally { lines: entries, entries: told, ..Tally::default() };
    let files = [File { name: "journal".to_owned(), tally, skew: None }];
    show(args, &findings, &files, &timelines)?;
    Ok(exit_code(&findings))
}

/// Adds findings that the journal alone does not tell.
fn add(findings: &mut Findings, more: Vec<palisade_audit::Finding>) {
    findings.summary.count(&more);
    findings.findings.extend(more);
    findings.findings.sort_by(|a, b| (&a.resource, a.at, a.kind).cmp(&(&b.resource, b.at, b.kind)));
}

async fn draw(
    args: &DiagnoseArgs,
    source: &Source,
    findings: &Findings,
) -> anyhow::Result<Vec<Timeline>> {
    let nothing = findings.findings.is_empty() && args.timeline.is_none();
    if nothing || (args.json && args.html.is_none() && args.timeline.is_none()) {
        return Ok(Vec::new());
    }
    let wanted = wanted_resources(findings, args.timeline.as_deref());
    let mut collector = Collector::of_journal(wanted.into_iter());
    source.read(&mut |_| {}, &mut |entry| collector.push(entry)).await?;
    Ok(collector.finish(&findings.findings))
}

impl Source {
    /// Reads the journal: every entry as it stands to `noting`, and what it says to `sink`.
    async fn read(
        &self,
        noting: &mut (dyn FnMut(&Event) + Send),
        sink: &mut (dyn FnMut(&Entry<'_>) + Send),
    ) -> anyhow::Result<()> {
        let mut translator = Translator::default();
        match self {
            Self::Folder(folder) => {
                SqliteSnapshot::open(folder)?.journal(&mut |position, event| {
                    noting(event);
                    translator.push(position, event, &mut *sink);
                })?;
            }
            Self::Server(client) => {
                let mut stream = client.events(EventsFrom::Beginning, false).await?;
                while let Some(entry) = stream.next().await? {
                    noting(&entry.event);
                    translator.push(entry.position, &entry.event, &mut *sink);
                }
            }
        }
        Ok(())
    }

    /// The jobs that wait, and the latest instant that they tell of.
    async fn queue(&self) -> anyhow::Result<(Queue, Timestamp)> {
        match self {
            Self::Folder(folder) => queue_of_folder(folder),
            Self::Server(client) => queue_of_server(client).await,
        }
    }
}

fn queue_of_folder(folder: &std::path::Path) -> anyhow::Result<(Queue, Timestamp)> {
    let snapshot = SqliteSnapshot::open(folder)?;
    let mut queue = Queue::default();
    snapshot.jobs(&mut |_, job| {
        // One that cannot be read is `audit`'s matter.
        let Ok(job) = job else { return };
        let definition = job.spec.definition.to_string();
        queue.job(QueuedJob {
            id: &job.id.to_string(),
            recipe: (job.spec.recipe.as_str(), &definition),
            waits_since: waits_since(&job),
            due: job.run_at.max(job.created_at),
            granted_at: job.attempts.last().map(|attempt| attempt.granted_at),
        });
    })?;
    // As far as the store's own clock has come: a copy's stands still.
    Ok((queue, snapshot.clock()?))
}

fn waits_since(job: &Job) -> Option<Timestamp> {
    (job.state == JobState::Queued).then_some(job.run_at.max(job.moved_at))
}

async fn queue_of_server(client: &Client) -> anyhow::Result<(Queue, Timestamp)> {
    let (mut queue, mut now) = (Queue::default(), Timestamp(0));
    let mut before: Option<String> = None;
    loop {
        let cursor = before.as_ref().map(|id| format!("&cursor={id}")).unwrap_or_default();
        let page = client.jobs(&format!("limit={JOBS_AT_ONCE}{cursor}")).await?.jobs;
        let Some(last) = page.last() else { return Ok((queue, now)) };
        before = Some(last.id.clone());
        for job in &page {
            now = now.max(Timestamp(job.now_ms));
            let waits = (job.state == "queued").then_some(job.run_at_ms.max(job.moved_at_ms));
            queue.job(QueuedJob {
                id: &job.id,
                recipe: (&job.recipe, &job.definition),
                waits_since: waits.map(Timestamp),
                due: Timestamp(job.run_at_ms.max(job.created_at_ms)),
                granted_at: job.attempts.last().map(|attempt| Timestamp(attempt.granted_at_ms)),
            });
        }
    }
}
