//! What is sent: JSON of a fixed shape. Thin where it could become long; the rest is asked for.

use serde::Serialize;

use crate::{
    Digest, JobId, Number, OutputName, RecipeName, Tenant, Timestamp, WorkerName,
    job::{Job, JobState},
};

use super::{EventType, Told};

/// Most outputs that a notification lists; a folder of segments is asked for instead.
const OUTPUTS_SHOWN_MAX: usize = 32;

/// How far a render is.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Progress {
    /// How much of it is done, 0 to 1, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How fast, in media seconds a second, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// How long it will take still, in ms, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
}

#[derive(Serialize)]
struct Body<'job> {
    r#type: EventType,
    timestamp: String,
    data: Data<'job>,
}

#[derive(Serialize)]
struct Data<'job> {
    job: JobId,
    tenant: &'job Tenant,
    recipe: &'job RecipeName,
    submission: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<Number>,
    seq: Number,
    at_ms: Timestamp,
    state: JobState,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion: Option<Completed<'job>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failed<'job>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

#[derive(Serialize)]
struct Completed<'job> {
    worker: &'job WorkerName,
    at_ms: Timestamp,
    outputs_total: usize,
    outputs: Vec<Shown<'job>>,
}

#[derive(Serialize)]
struct Shown<'job> {
    name: &'job OutputName,
    digest: Digest,
    size_bytes: u64,
    media_type: &'job str,
}

#[derive(Serialize)]
struct Failed<'job> {
    reason: &'job str,
    message: &'job str,
}

/// The body about a move.
pub(super) fn of_move(job: &Job, told: Told, seq: Number, at: Timestamp) -> String {
    let mut data = data(job, told, (seq, at));
    data.completion = completed(job);
    data.failure = job
        .dead_letter
        .as_ref()
        .map(|letter| Failed { reason: &letter.reason, message: &letter.message });
    written(told.event, data)
}

/// The body about a render that came further.
pub(super) fn of_progress(
    job: &Job,
    told: Told,
    came: Progress,
    when: (Number, Timestamp),
) -> String {
    let mut data = data(job, told, when);
    data.progress = Some(came);
    written(told.event, data)
}

fn data(job: &Job, told: Told, (seq, at): (Number, Timestamp)) -> Data<'_> {
    Data {
        job: job.id,
        tenant: &job.tenant,
        recipe: &job.spec.recipe,
        submission: told.submission,
        token: told.token,
        seq,
        at_ms: at,
        state: job.state,
        completion: None,
        failure: None,
        progress: None,
    }
}

fn completed(job: &Job) -> Option<Completed<'_>> {
    let completion = job.completion.as_ref()?;
    let outputs = &completion.manifest.outputs;
    let shown = outputs.iter().take(OUTPUTS_SHOWN_MAX).map(|output| Shown {
        name: &output.name,
        digest: output.digest,
        size_bytes: output.size_bytes,
        media_type: &output.media_type,
    });
    Some(Completed {
        worker: &completion.worker,
        at_ms: completion.at,
        outputs_total: outputs.len(),
        outputs: shown.collect(),
    })
}

fn written(event: EventType, data: Data<'_>) -> String {
    let body = Body { r#type: event, timestamp: data.at_ms.rfc3339(), data };
    serde_json::to_string(&body).expect("names, numbers and texts always serialise")
}
