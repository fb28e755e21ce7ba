//! `audit`: the invariants of a store and its blobs, looked at from outside.
//!
//! Exit codes: 0 all is as it must be, 1 findings, 2 the store cannot be read.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::Context;
use futures_util::TryStreamExt;
use palisade_artefacts::{Blobs, ByteRange, Location, Place};
use palisade_audit::records::{Checker, Violation};
use palisade_core::{
    Digest,
    blob::BlobState,
    job::Job,
    object::{Content, Object},
};
use palisade_store::{
    Snapshot,
    fault::Fault,
    postgres::{Address, PostgresSnapshot},
    sqlite::SqliteSnapshot,
};
use serde::Serialize;

use crate::{
    args::Common,
    exit::{self, Usage},
    output,
};

use super::artefacts::{environment, parse_location};

/// Flags of `audit`.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// The data directory, or a copy of it.
    #[arg(long, value_name = "DIR", required_unless_present = "store")]
    data: Option<PathBuf>,
    /// The PostgreSQL that keeps the records, as `serve --store` has it; a standby will do.
    #[arg(long, env = "PALISADE_STORE", value_name = "URL", hide_env_values = true)]
    store: Option<String>,
    /// Where the blobs are, as `serve --artefacts` has it; in the data directory if not given.
    #[arg(long, env = "PALISADE_ARTEFACTS", value_name = "URL")]
    artefacts: Option<String>,
    /// Look at the length of each blob alone, and do not read its bytes.
    #[arg(long)]
    quick: bool,
}

/// One thing that is not as it must be.
#[derive(Debug, Serialize)]
struct Finding {
    /// Which invariant, as a stable word.
    rule: &'static str,
    /// The record.
    record: String,
    /// What is there.
    evidence: String,
}

impl From<Violation> for Finding {
    fn from(found: Violation) -> Self {
        Self { rule: found.rule.as_str(), record: found.record, evidence: found.evidence }
    }
}

/// What was looked at, and what was found.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Where the records were, and where the blobs.
    store: String,
    artefacts: String,
    jobs: u64,
    entries: u64,
    locks: u64,
    objects: u64,
    notifications: u64,
    blobs: u64,
    findings: Vec<Finding>,
}

/// A blob that has to be there, and the first record that needs it.
#[derive(Debug)]
struct Named {
    rule: &'static str,
    record: String,
    size_bytes: u64,
    /// Where its row says it is; none: there is no row that says so.
    place: Option<Place>,
}

pub(crate) async fn run(args: AuditArgs, common: Common) -> anyhow::Result<ExitCode> {
    let blobs = args.location()?.open_as_found(&environment()).await?;
    let (store, records) = args.records().await?;
    let looked = tokio::task::spawn_blocking(move || look_at_records(&*records()?)).await;
    let (mut report, named) = looked.context("reading the records panicked")??;
    (report.store, report.artefacts) = (store, blobs.name);
    let blobs = blobs.blobs;
    for (digest, named) in &named {
        report.blobs += 1;
        if let Some(evidence) = look_at_blob(&*blobs, *digest, named, args.quick).await {
            let (rule, record) = (named.rule, named.record.clone());
            report.findings.push(Finding { rule, record, evidence });
        }
    }
    show(&report, common.json);
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Opens records, where it may block.
type Open = Box<dyn FnOnce() -> anyhow::Result<Box<dyn Snapshot>> + Send>;

impl AuditArgs {
    /// Where the records are, and how they are opened.
    async fn records(&self) -> anyhow::Result<(String, Open)> {
        if let Some(url) = &self.store {
            let address = Address::parse(url)?;
            // 2 as for whatever else cannot be read, also while it is away.
            let unreadable = |error| Usage(palisade_core::with_causes(&error));
            let snapshot = PostgresSnapshot::open(&address).await.map_err(unreadable)?;
            let records: Box<dyn Snapshot + Send> = Box::new(snapshot);
            return Ok((address.shown(), Box::new(move || Ok(records as Box<dyn Snapshot>))));
        }
        let folder = self.data.clone().context("no store is named")?;
        let name = folder.display().to_string();
        Ok((name, Box::new(move || Ok(Box::new(SqliteSnapshot::open(&folder)?)))))
    }

    /// Where the blobs are.
    fn location(&self) -> anyhow::Result<Location> {
        match (&self.artefacts, &self.data) {
            (Some(text), _) => parse_location(text),
            (None, Some(data)) => Ok(Location::Folder(data.join("blobs"))),
            (None, None) => {
                let message = "--artefacts or --data must say where the blobs are";
                Err(Usage(message.to_owned()).into())
            }
        }
    }
}

fn show(report: &Report, json: bool) {
    if json {
        output::json(report);
        return;
    }
    for found in &report.findings {
        output::line(&format!("{}  {}: {}", found.rule, found.record, found.evidence));
    }
    output::note(&format!(
        "{}, blobs in {}: {} job(s), {} journal entries, {} lock(s), {} object(s), \
         {} notification(s), {} blob(s): {} finding(s)",
        report.store,
        report.artefacts,
        report.jobs,
        report.entries,
        report.locks,
        report.objects,
        report.notifications,
        report.blobs,
        report.findings.len()
    ));
}

type Looked = (Report, BTreeMap<Digest, Named>);

/// Everything that the database alone can tell.
fn look_at_records(snapshot: &dyn Snapshot) -> anyhow::Result<Looked> {
    let mut checker = Checker::new(snapshot.counter()?).with_one_writer(snapshot.has_one_writer());
    let (mut report, mut named) = (Report::default(), BTreeMap::new());
    let mut corrupt = Vec::new();
    let mut unreadable = |record: String, fault: &Fault| {
        corrupt.push(Finding { rule: "readable", record, evidence: fault.to_string() });
    };
    match snapshot.endpoints() {
        Ok(endpoints) => {
            for endpoint in &endpoints {
                checker.endpoint(endpoint);
            }
        }
        Err(fault) => unreadable("webhooks".to_owned(), &fault),
    }
    snapshot.jobs(&mut |id, job| {
        report.jobs += 1;
        match job {
            Ok(job) => {
                checker.job(&job);
                note_outputs(&job, &mut named);
                note_inputs(&job, &mut named);
            }
            Err(fault) => unreadable(id.to_string(), &fault),
        }
    })?;
    let journal = snapshot.journal(&mut |position, event| {
        report.entries += 1;
        checker.event(position, event);
    });
    let locks = snapshot.locks(&mut |lock| {
        report.locks += 1;
        checker.lock(lock);
    });
    let grants = snapshot.lock_grants(&mut |grant| checker.lock_grant(grant));
    let objects = snapshot.objects(&mut |object| {
        report.objects += 1;
        checker.object(object);
        note_content(object, &mut named);
    });
    if objects.is_ok() {
        checker.all_objects_shown();
    }
    let notifications = snapshot.deliveries(&mut |row| {
        report.notifications += 1;
        checker.delivery(row);
    });
    let publications = snapshot.publications_due().map(|due| checker.publications_due(&due));
    let parts = [
        ("journal", journal),
        ("locks", locks),
        ("grants", grants),
        ("objects", objects),
        ("notifications", notifications),
        ("publications", publications),
    ];
    for (part, read) in parts {
        if let Err(fault) = read {
            unreadable(part.to_owned(), &fault);
        }
    }
    for (digest, named) in &mut named {
        let row = snapshot.blob(*digest)?.filter(|blob| blob.state == BlobState::Present);
        named.place = row.map(|blob| Place::new(*digest, blob.generation));
    }
    report.findings = corrupt;
    report.findings.extend(checker.finish().into_iter().map(Finding::from));
    Ok((report, named))
}

fn note_outputs(job: &Job, named: &mut BTreeMap<Digest, Named>) {
    for output in job.completion.iter().flat_map(|completion| &completion.manifest.outputs) {
        let record = || format!("{} {}", job.id, output.name);
        note(named, output.digest, ("blobs", record, output.size_bytes));
    }
}

/// A job that still has a rendering before it needs what it is rendered from.
fn note_inputs(job: &Job, named: &mut BTreeMap<Digest, Named>) {
    let live = job.state.is_live();
    for (name, input) in job.spec.inputs.iter().filter(|_| live) {
        let record = || format!("{} {name}", job.id);
        note(named, input.digest, ("inputs", record, input.size_bytes));
    }
}

fn note_content(object: &Object, named: &mut BTreeMap<Digest, Named>) {
    if let Some(Content::Blob { digest, size_bytes, .. }) = &object.content {
        note(named, *digest, ("objects", || format!("object {}", object.key), *size_bytes));
    }
}

fn note(
    named: &mut BTreeMap<Digest, Named>,
    digest: Digest,
    (rule, record, size_bytes): (&'static str, impl FnOnce() -> String, u64),
) {
    let new = || Named { rule, record: record(), size_bytes, place: None };
    named.entry(digest).or_insert_with(new);
}

/// What is wrong with a blob, if something is.
async fn look_at_blob(
    blobs: &dyn Blobs,
    digest: Digest,
    named: &Named,
    quick: bool,
) -> Option<String> {
    let Some(place) = named.place else {
        return Some(format!("no row says that blob {digest} is present"));
    };
    match blobs.size(place).await {
        Ok(None) => return Some(format!("blob {place} is not there")),
        Ok(Some(size)) if size != named.size_bytes => {
            let length = named.size_bytes;
            return Some(format!("blob {place} has {size} bytes, its record says {length}"));
        }
        Ok(Some(_)) => {}
        Err(error) => return Some(format!("blob {place}: {error}")),
    }
    if quick {
        return None;
    }
    // The reader compares the digest before it gives out the last chunk.
    let whole = async {
        let mut reader = blobs.open(place, ByteRange::FULL).await?;
        while reader.chunks.try_next().await?.is_some() {}
        Ok::<(), palisade_artefacts::BlobError>(())
    };
    whole.await.err().map(|error| format!("blob {place}: {error}"))
}
