//! What must be true at the end, looked at from outside: the files, not what the server says of
//! them.

use std::{path::Path, process::Stdio};

use palisade_api::{Client, wire::JobView};
use palisade_core::{digest::Hasher, manifest::Output};
use tokio::io::AsyncWriteExt;

use crate::drill::DrillError;

use super::story::Export;

/// Fetches a job's outputs below `folder` and looks at them. Answers what is wrong.
pub(super) async fn check(
    client: &Client,
    export: &Export,
    job: &JobView,
    folder: &Path,
) -> Result<Vec<String>, DrillError> {
    let mut complaints = Vec::new();
    let completed = job.attempts.iter().filter(|attempt| attempt.outcome == "completed").count();
    if completed != 1 {
        complaints.push(format!("{} was completed {completed} times", job.id));
    }
    let Some(completion) = &job.completion else {
        complaints.push(format!("{} is missing: {}", job.id, job.state));
        return Ok(complaints);
    };
    let folder = folder.join(&job.id);
    for output in &completion.manifest.outputs {
        if !fetch(client, &job.id, output, &folder.join(output.name.as_str())).await? {
            complaints.push(format!("{}: {} is not what its digest says", job.id, output.name));
        }
    }
    let playable = completion.manifest.outputs.iter().find(|output| {
        [".mp4", ".m3u8"].iter().any(|ending| output.name.as_str().ends_with(ending))
    });
    match playable {
        None => complaints.push(format!("{} ({}) has no film", job.id, export.recipe)),
        Some(output) => {
            let path = folder.join(output.name.as_str());
            complaints.extend(play(&path, export.seconds).await?);
        }
    }
    Ok(complaints)
}

async fn fetch(
    client: &Client,
    job: &str,
    output: &Output,
    path: &Path,
) -> Result<bool, DrillError> {
    let io = |what: &str| DrillError::io(format!("{what} {}", path.display()));
    let folder = path.parent().expect("below the job's folder");
    std::fs::create_dir_all(folder).map_err(io("cannot make the folder of"))?;
    let mut download = client.output(job, output.name.as_str()).await?;
    let mut file = tokio::fs::File::create(path).await.map_err(io("cannot write"))?;
    let mut hasher = Hasher::new();
    while let Some(chunk) = download.next().await? {
        hasher.update(&chunk);
        file.write_all(&chunk).await.map_err(io("cannot write"))?;
    }
    file.flush().await.map_err(io("cannot write"))?;
    Ok(hasher.finish() == output.digest)
}

/// Decodes every frame, and compares the length with the clip's.
#[expect(clippy::disallowed_methods, reason = "the drill's own processes start here alone")]
async fn play(path: &Path, seconds: u32) -> Result<Vec<String>, DrillError> {
    let decoded = tokio::process::Command::new("ffmpeg")
        .args(["-nostdin", "-hide_banner", "-v", "error", "-progress", "pipe:1", "-i"])
        .arg(path)
        .args(["-f", "null", "-"])
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(DrillError::io("cannot start ffmpeg; is it installed?"))?;
    let mut complaints = Vec::new();
    let shown = path.display();
    let errors = String::from_utf8_lossy(&decoded.stderr);
    if !decoded.status.success() || !errors.trim().is_empty() {
        complaints.push(format!("{shown} does not play: {}", errors.trim()));
    }
    let progress = String::from_utf8_lossy(&decoded.stdout);
    let played = progress.lines().rev().find_map(|line| line.strip_prefix("out_time_us="));
    let played_s = played.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) / 1e6;
    if (played_s - f64::from(seconds)).abs() > 0.5 {
        complaints.push(format!("{shown} plays {played_s:.1} s, the clip has {seconds} s"));
    }
    Ok(complaints)
}
