//! `get`: fetches a job's outputs.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use palisade_api::{Client, client::Download, wire::JobView};
use palisade_core::{JobId, digest::Hasher, manifest::Output};
use tokio::io::AsyncWriteExt;

use crate::{
    args::Common,
    exit::{self, Usage},
    output,
};

use super::{
    client,
    inputs::{random_id, shown},
};

/// Flags of `get`.
#[derive(Debug, clap::Args)]
pub(crate) struct GetArgs {
    /// The job's id.
    job: JobId,
    /// One output alone; all of them if not given.
    #[arg(long, value_name = "NAME")]
    output: Option<String>,
    /// Where to: a file for one output, a folder for several.
    #[arg(short, long = "out", value_name = "PATH")]
    out: PathBuf,
}

pub(crate) async fn run(args: GetArgs, common: Common) -> anyhow::Result<ExitCode> {
    let client = client(&common)?;
    let mut job = client.job(&args.job.to_string()).await?;
    if let (Some(name), Some(completion)) = (&args.output, &mut job.completion) {
        completion.manifest.outputs.retain(|output| output.name.as_str() == name);
        if completion.manifest.outputs.is_empty() {
            return Err(Usage(format!("output: {name:?} is not an output of {}", job.id)).into());
        }
    }
    if job.completion.is_none() {
        output::complain(&format!("palisade: {} is {}, it has no outputs", job.id, job.state));
        return Ok(ExitCode::from(exit::REFUSED));
    }
    let paths = fetch(&client, &job, &args.out).await?;
    if common.json {
        output::json(&paths);
    } else {
        for path in &paths {
            output::line(path);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Fetches all outputs of a complete job: one to the file `out`, several below the folder `out`.
/// Answers where they are.
pub(crate) async fn fetch(
    client: &Client,
    job: &JobView,
    out: &Path,
) -> anyhow::Result<Vec<String>> {
    let completion = job.completion.as_ref().context("the job is not complete")?;
    let outputs = &completion.manifest.outputs;
    let mut paths = Vec::new();
    for output in outputs {
        let path = match outputs.as_slice() {
            [_only] if !out.is_dir() => out.to_owned(),
            // A name in a manifest cannot climb: its type does not hold `..`.
            _ => out.join(output.name.as_str()),
        };
        fetch_one(client, &job.id, output, &path).await?;
        paths.push(path.display().to_string());
    }
    Ok(paths)
}

/// Nothing half-written ever stands under the name: the file is written beside it, checked against
/// its digest, and renamed.
async fn fetch_one(client: &Client, job: &str, output: &Output, path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let file_error = |what: &str| format!("cannot {what} {}", shown(path));
    tokio::fs::create_dir_all(folder).await.with_context(|| file_error("make the folder of"))?;
    let partial = folder.join(format!(".palisade-{}", random_id()));
    let download = client.output(job, output.name.as_str()).await?;
    let written = write(download, output, &partial).await.with_context(|| file_error("write"));
    let renamed = match written {
        Ok(()) => tokio::fs::rename(&partial, path).await.with_context(|| file_error("write")),
        Err(error) => Err(error),
    };
    if renamed.is_err() {
        // The first error is the one to tell.
        let _ = tokio::fs::remove_file(&partial).await;
    }
    renamed
}

async fn write(mut download: Download, output: &Output, path: &Path) -> anyhow::Result<()> {
    let mut file = tokio::fs::File::create_new(path).await?;
    let mut hasher = Hasher::new();
    while let Some(chunk) = download.next().await? {
        hasher.update(&chunk);
        file.write_all(&chunk).await?;
    }
    file.flush().await?;
    file.sync_all().await?;
    anyhow::ensure!(hasher.finish() == output.digest, "what arrived is not what was made");
    Ok(())
}
