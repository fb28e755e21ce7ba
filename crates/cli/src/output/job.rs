//! Jobs, for people.

use palisade_api::wire::{AttemptView, JobView, PublicationView};

use super::{clock_time, line, span, table};

/// A line a job.
pub(crate) fn job_table(jobs: &[JobView]) {
    let mut rows = table(["job", "state", "recipe", "input", "attempts", "by", "age"]);
    for job in jobs {
        let input = job.inputs.values().find_map(|input| input.name.clone());
        rows.add_row([
            job.id.clone(),
            state(job),
            job.recipe.clone(),
            input.unwrap_or_default().escape_debug().to_string(),
            job.attempts.len().to_string(),
            job.attempts.last().map(|attempt| attempt.worker.clone()).unwrap_or_default(),
            span(job.now_ms.saturating_sub(job.created_at_ms)),
        ]);
    }
    line(&rows.to_string());
}

fn state(job: &JobView) -> String {
    if job.state == "running" && job.claimable {
        // Its holder's time is over and nobody has replaced it yet.
        return "running (claimable)".to_owned();
    }
    job.state.clone()
}

/// All of one job.
pub(crate) fn job_details(job: &JobView) {
    line(&format!("{}  {}  {}", job.id, state(job), job.recipe));
    for (name, input) in &job.inputs {
        let shown = input.name.as_deref().unwrap_or("").escape_debug().to_string();
        line(&format!("  input {name}: {shown} ({} bytes, {})", input.size_bytes, input.digest));
    }
    let parameters: Vec<_> = job.parameters.iter().map(|(k, v)| format!("{k}={v}")).collect();
    if !parameters.is_empty() {
        line(&format!("  parameters: {}", parameters.join(" ")));
    }
    for submission in &job.submissions {
        let withdrawn = if submission.withdrawn_at_ms.is_some() { ", withdrawn" } else { "" };
        let published = submission.publication.as_ref();
        let published = published.map(|one| format!(", {}", publication(one))).unwrap_or_default();
        let (number, how) = (submission.number, &submission.how);
        line(&format!("  submission {number}: {how}{withdrawn}{published}"));
    }
    if !job.attempts.is_empty() {
        line("");
        attempts(&job.attempts);
    }
    if let Some(completion) = &job.completion {
        line("");
        line(&format!("  complete by token {} ({}):", completion.token, completion.worker));
        for output in &completion.manifest.outputs {
            line(&format!("    {}  {} bytes  {}", output.name, output.size_bytes, output.digest));
        }
        line(&format!("  made by {}", completion.manifest.provenance.toolchain));
    }
    if let Some(letter) = &job.dead_letter {
        line("");
        line(&format!("  failed ({}): {}", letter.reason, letter.message));
    }
}

/// How a publication stands.
pub(crate) fn publication(publication: &PublicationView) -> String {
    let PublicationView { key, state, version, fence, .. } = publication;
    match state.as_str() {
        "published" => {
            let version = version.map(|version| format!(" (version {version})"));
            format!("published as {key}{}", version.unwrap_or_default())
        }
        "superseded" => {
            let newer = fence.map(|fence| format!(" {fence}")).unwrap_or_default();
            format!("not published as {key}: a newer submission{newer} has the name")
        }
        "wrong_kind" => format!("not published as {key}: holders write it themselves"),
        "withdrawn" => format!("not published as {key}"),
        _ => format!("to be published as {key}"),
    }
}

fn attempts(attempts: &[AttemptView]) {
    let mut rows = table(["token", "worker", "outcome", "granted", "held for", "message"]);
    for attempt in attempts {
        let end_ms = attempt.closed_at_ms.unwrap_or(attempt.renewed_at_ms);
        rows.add_row([
            attempt.token.to_string(),
            attempt.worker.clone(),
            attempt.outcome.clone(),
            clock_time(attempt.granted_at_ms),
            span(end_ms.saturating_sub(attempt.granted_at_ms)),
            attempt.message.clone().unwrap_or_default(),
        ]);
    }
    line(&rows.to_string());
}
