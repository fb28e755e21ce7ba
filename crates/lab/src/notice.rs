//! A notification as its receiver understands it: by its body alone.

use palisade_core::{Digest, JobId, Number, outbox::EventType};
use serde::Deserialize;

/// What a receiver learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heard {
    /// What happened.
    pub event: EventType,
    /// To which job.
    pub job: JobId,
    /// Whose wish it was.
    pub submission: Number,
    /// The token that did it.
    pub token: Option<Number>,
    /// Of what is said about a job, the higher is the newer.
    pub seq: Number,
    /// What was made, if something was.
    pub made: Option<Digest>,
}

#[derive(Deserialize)]
struct Body {
    r#type: EventType,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    job: JobId,
    submission: Number,
    token: Option<Number>,
    seq: Number,
    completion: Option<Completed>,
}

#[derive(Deserialize)]
struct Completed {
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    digest: Digest,
}

/// Reads a body. None: no receiver could.
pub(crate) fn read(body: &str) -> Option<Heard> {
    let Body { r#type: event, data } = serde_json::from_str(body).ok()?;
    let made = data.completion.as_ref().and_then(|made| made.outputs.first());
    Some(Heard {
        event,
        job: data.job,
        submission: data.submission,
        token: data.token,
        seq: data.seq,
        made: made.map(|output| output.digest),
    })
}
