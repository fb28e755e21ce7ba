//! `palisade diagnose`: reads lock logs, or the own journal, hands their entries to the analysis, shows the report.
//!
//! Exit codes: 0 nothing found, 1 findings, 2 arguments or input that cannot be used.

mod input;
pub(crate) mod output;
mod own;
mod translate;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use palisade_audit::findings::{Analyser, Findings, Settings};
use palisade_audit::read::Tally;
use palisade_audit::report::{File, Report};
use palisade_audit::skew::{Estimator, Skew, Sureness};
use palisade_audit::timeline::{Collector, Timeline};

use crate::args::Common;

use input::Inputs;

/// How many resources with findings get a picture.
const TIMELINES_MAX: usize = 50;

/// Explain what went wrong, in somebody else's lock logs or in Palisade's own history.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 no findings, 1 findings, 2 unusable arguments or input.")]
pub(crate) struct DiagnoseArgs {
    /// The logs; `-` is standard input. Several are put in one order, their clocks compared.
    #[arg(required_unless_present_any = ["own", "data"])]
    files: Vec<PathBuf>,
    /// Instead of logs: the journal of the server that --server names.
    #[arg(long, conflicts_with_all = ["files", "data"])]
    own: bool,
    /// Instead of logs: the journal of a data directory, served or copied.
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    data: Option<PathBuf>,
    /// How the lines are built: json, csv, logfmt or pattern [default: found out].
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// A regular expression for plain lines, with groups named as the fields; may be repeated.
    #[arg(long, value_name = "REGEX")]
    pattern: Vec<String>,
    /// What the log calls one of our fields; may be repeated.
    #[arg(long, value_name = "FIELD=NAME")]
    map: Vec<String>,
    /// What one of the log's event words means; may be repeated.
    #[arg(long, value_name = "THEIRS=OURS")]
    event: Vec<String>,
    /// A built-in profile (bullmq, celery, kubernetes, redisson, sidekiq), or a profile's file.
    #[arg(long, value_name = "PROFILE")]
    profile: Vec<String>,
    /// The ttl of grants and renewals that do not say theirs, such as 30s.
    #[arg(long, value_name = "SPAN")]
    ttl: Option<String>,
    /// The year of times that leave it out.
    #[arg(long, value_name = "YEAR")]
    year: Option<u64>,
    /// Show the picture of this resource, whether anything went wrong with it or not.
    #[arg(long, value_name = "RESOURCE")]
    timeline: Option<String>,
    /// Write the picture that --timeline shows to a file, as SVG.
    #[arg(long, value_name = "FILE", requires = "timeline")]
    svg: Option<PathBuf>,
    /// Write the report to a file, as HTML with the pictures in it.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Whether to print the report as JSON: the flag that all verbs share.
    #[arg(skip)]
    json: bool,
    #[command(flatten)]
    look: output::LookArgs,
}

impl DiagnoseArgs {
    /// The same with the flag that all verbs share.
    pub(crate) fn with_json(self, json: bool) -> Self {
        Self { json, ..self }
    }
}

/// Runs the command.
pub(crate) async fn run(args: &DiagnoseArgs, common: &Common) -> anyhow::Result<ExitCode> {
    match own::source(args, common)? {
        Some(source) => own::run(args, &source).await,
        None => run_files(args),
    }
}

fn run_files(args: &DiagnoseArgs) -> anyhow::Result<ExitCode> {
    let translation = translate::translation(args)?;
    let mut inputs = Inputs::open(&args.files)?;
    let skews =
        if inputs.count() > 1 { compare_clocks(&mut inputs, &translation)? } else { vec![] };
    let offsets_ms: Vec<i64> = skews.iter().map(|skew| skew.offset_ms).collect();
    let settings = Settings {
        offsets_ms: offsets_ms.clone(),
        uncertainty_ms: uncertainty_ms(&skews),
        doubtful: skews.iter().map(Skew::is_doubtful).collect(),
        ..translation.settings()
    };
    let mut analyser = Analyser::new(settings);
    let tallies = inputs.read("reading", &translation, &offsets_ms, &mut |entry| {
        analyser.push(entry);
    })?;
    refuse_unreadable(&tallies)?;
    let findings = analyser.finish();
    let timelines = if args.json && args.html.is_none() && args.timeline.is_none() {
        Vec::new()
    } else {
        let wanted = wanted_resources(&findings, args.timeline.as_deref());
        let mut collector = Collector::new(wanted.into_iter(), offsets_ms.clone());
        if !findings.findings.is_empty() || args.timeline.is_some() {
            inputs.read("drawing", &translation, &offsets_ms, &mut |entry| {
                collector.push(entry);
            })?;
        }
        collector.finish(&findings.findings)
    };
    show(args, &findings, &files(args, tallies, &skews), &timelines)?;
    Ok(exit_code(&findings))
}

fn exit_code(findings: &Findings) -> ExitCode {
    let total = findings.findings.len() as u64 + findings.dropped;
    ExitCode::from(u8::from(total > 0))
}

fn show(
    args: &DiagnoseArgs,
    findings: &Findings,
    files: &[File],
    timelines: &[Timeline],
) -> anyhow::Result<()> {
    if let Some(resource) = &args.timeline {
        let Some(timeline) = timelines.iter().find(|timeline| timeline.resource == *resource)
        else {
            bail!("timeline: {resource:?} does not occur in the logs");
        };
        return output::timeline(&args.look, args.json, args.svg.as_deref(), timeline);
    }
    let report = Report { findings, files, timelines };
    if let Some(path) = &args.html {
        output::html(path, &report)?;
    }
    output::report(&args.look, args.json, &report)
}

/// Reads all files once, to learn how far their clocks are apart.
fn compare_clocks(
    inputs: &mut Inputs,
    translation: &palisade_audit::read::Translation,
) -> anyhow::Result<Vec<Skew>> {
    let count = u32::try_from(inputs.count()).context("too many files")?;
    let mut estimator = Estimator::new(count);
    inputs.read("comparing clocks", translation, &[], &mut |entry| estimator.push(entry))?;
    Ok(estimator.finish())
}

/// What the corrections may be wrong by: where nothing was corrected, nothing is allowed for.
fn uncertainty_ms(skews: &[Skew]) -> u64 {
    skews
        .iter()
        .filter(|skew| skew.offset_ms != 0 && skew.sureness != Sureness::Unknown)
        .filter_map(|skew| skew.uncertainty_ms)
        .max()
        .unwrap_or(0)
        .min(10_000)
}

/// A log of which nothing can be read was read in the wrong way.
fn refuse_unreadable(tallies: &[Tally]) -> anyhow::Result<()> {
    let entries: u64 = tallies.iter().map(|tally| tally.entries).sum();
    let lines: u64 = tallies.iter().map(|tally| tally.lines).sum();
    if entries > 0 || lines == 0 {
        return Ok(());
    }
    let unreadable = tallies.iter().flat_map(|tally| &tally.unreadable).next();
    let unknown = tallies.iter().flat_map(|tally| &tally.unknown_words).next();
    match (unreadable, unknown) {
        (Some(line), _) => bail!(
            "none of the {lines} lines could be read; line {}: {} (--map, --format, --pattern and \
             --profile say how)",
            line.source.line,
            line.why
        ),
        (None, Some((word, _))) => bail!(
            "none of the {lines} lines has an event that is one of ours; the first is {word:?} \
             (--event {word}=OURS translates it)"
        ),
        (None, None) => bail!("none of the {lines} lines is one that the profile knows"),
    }
}

/// The resources to draw: the one that was asked for, or those with findings.
fn wanted_resources<'f>(findings: &'f Findings, asked: Option<&'f str>) -> Vec<&'f str> {
    if let Some(asked) = asked {
        return vec![asked];
    }
    let mut wanted: Vec<&str> = Vec::new();
    for finding in &findings.findings {
        if wanted.last() != Some(&finding.resource.as_str()) {
            wanted.push(&finding.resource);
        }
        if wanted.len() >= TIMELINES_MAX {
            break;
        }
    }
    wanted
}

fn files(args: &DiagnoseArgs, tallies: Vec<Tally>, skews: &[Skew]) -> Vec<File> {
    let names = args.files.iter().map(|path| path.display().to_string());
    names
        .zip(tallies)
        .enumerate()
        .map(|(index, (name, tally))| File { name, tally, skew: skews.get(index).copied() })
        .collect()
}
