//! `export`: submits a file, shows its progress, fetches the result. Without a server, all of it
//! runs in this process.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use palisade_api::{
    Client,
    wire::{JobView, SubmissionView},
};
use serde_json::json;

use crate::{
    args::Common,
    exit::{self, Usage},
    output::{self, ProgressLine},
};

use super::{
    client, get,
    inputs::{self, WishArgs, shown},
    up::{Embedded, EmbeddedOptions},
    wait::is_over,
};

/// Flags of `export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The file to export.
    #[arg(allow_hyphen_values = true)]
    file: PathBuf,
    #[command(flatten)]
    wish: WishArgs,
    /// Where the result goes: a file, or a folder for recipes that make several.
    #[arg(short, long = "out", value_name = "PATH")]
    out: PathBuf,
    /// The recipe's input that FILE is.
    #[arg(long, default_value = "source", value_name = "NAME")]
    input: String,
    #[command(flatten)]
    embedded: EmbeddedOptions,
}

/// How often the progress is looked at.
const LOOK: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: ExportArgs, common: Common) -> anyhow::Result<ExitCode> {
    let files = [(args.input.clone(), args.file.clone())];
    inputs::check_files(&files)?;
    refuse_same_file(&args.file, &args.out)?;
    let mut progress = ProgressLine::new(common.json);
    if common.server.is_some() {
        let client = client(&common)?;
        return export(&client, &args, &mut progress, common.json).await;
    }
    if args.wish.publish.is_some() {
        let text = "publish: a name is the server's to show; give --server URL too";
        return Err(Usage(text.to_owned()).into());
    }
    let embedded = Embedded::start(&args.embedded).await?;
    let exported = tokio::select! {
        exported = export(embedded.client(), &args, &mut progress, common.json) => exported,
        _ = tokio::signal::ctrl_c() => Ok(ExitCode::from(130)),
    };
    progress.end();
    // Also after an error: what was started is ended, and a temporary folder is removed.
    embedded.end().await;
    exported
}

async fn export(
    client: &Client,
    args: &ExportArgs,
    progress: &mut ProgressLine,
    json: bool,
) -> anyhow::Result<ExitCode> {
    progress.say("reading the file");
    let files = [(args.input.clone(), args.file.clone())];
    let wish = inputs::wish(client, &args.wish, &files).await?;
    let submitted = inputs::submit(client, &wish).await?;
    let job = follow(client, &submitted.job, progress).await?;
    progress.end();
    if job.state != "complete" {
        return Ok(tell_failure(&job, json));
    }
    let of_ours = |one: &&SubmissionView| one.number == submitted.submission;
    if let Some(publication) =
        job.submissions.iter().find(of_ours).and_then(|one| one.publication.as_ref())
    {
        output::note(&output::publication(publication));
    }
    let paths = get::fetch(client, &job, &args.out).await?;
    if json {
        output::json(&json!({ "job": job, "files": paths }));
    } else {
        for path in &paths {
            output::line(path);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Follows a job until it is over. A server that is away for a while is waited for.
async fn follow(client: &Client, id: &str, progress: &mut ProgressLine) -> anyhow::Result<JobView> {
    loop {
        match client.wait(id, LOOK).await {
            Ok(job) if is_over(&job) => return Ok(job),
            Ok(job) => show(&job, progress),
            Err(error) if error.is_unconfirmed() => {
                progress.say("the server is away, waiting for it");
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => return Err(error).context("cannot follow the job"),
        }
    }
}

fn show(job: &JobView, progress: &mut ProgressLine) {
    let open = job.attempts.iter().rev().find(|attempt| attempt.outcome == "open");
    match open.and_then(|attempt| attempt.progress) {
        Some(seen) => progress.advance(seen.share, seen.speed, seen.left_ms),
        None if open.is_some() => progress.say("rendering"),
        None if job.failures + job.losses > 0 => {
            let last = job.attempts.iter().rev().find_map(|attempt| attempt.message.clone());
            let last = last.map(|text| format!(" ({text})")).unwrap_or_default();
            progress.say(&format!("waiting for the next try{last}"));
        }
        None => progress.say("waiting for a worker"),
    }
}

fn tell_failure(job: &JobView, json: bool) -> ExitCode {
    if json {
        output::json(&json!({ "job": job, "files": [] }));
    }
    let why = match &job.dead_letter {
        Some(letter) => format!("{} ({})", letter.message, letter.reason),
        None => format!("the job is {}", job.state),
    };
    output::complain(&format!("palisade: {} came to nothing: {why}", job.id));
    ExitCode::from(exit::FAILED)
}

/// An input is never written to, under whatever name it goes.
fn refuse_same_file(input: &Path, out: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (Ok(input_meta), Ok(out_meta)) = (std::fs::metadata(input), std::fs::metadata(out)) else {
        return Ok(());
    };
    let same = (input_meta.dev(), input_meta.ino()) == (out_meta.dev(), out_meta.ino());
    if same {
        return Err(Usage(format!("out: {} is the input itself", shown(out))).into());
    }
    Ok(())
}
