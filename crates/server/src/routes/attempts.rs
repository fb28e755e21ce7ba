//! What a worker reports of its attempt.

use axum::extract::State;
use palisade_api::wire::{
    CompleteRequest, CompleteResponse, FailRequest, ReleaseRequest, RequeuedResponse,
};
use palisade_core::{
    Invalid, JobId,
    job::{Failure, FailureKind, Requeued},
    limits,
    manifest::Manifest,
};
use palisade_store::{
    StoreExt,
    command::{Complete, Fail, Release},
};

use super::{ok, pair};
use crate::{
    app::App,
    edge::{Json, Segments},
    problems::Reply,
};

/// Longest media type, in bytes.
const MEDIA_TYPE_BYTES_MAX: usize = 128;
/// Longest word for a failure's cause, in bytes.
const REASON_BYTES_MAX: usize = 64;

/// `POST /v1/jobs/{id}/complete`.
pub(crate) async fn complete(
    State(app): State<App>,
    path: Segments,
    Json(asked): Json<CompleteRequest>,
) -> Reply {
    let job = path.get::<JobId>("id")?;
    let pair = pair("", asked.token, &asked.lease)?;
    check_media_types(&asked.manifest)?;
    let manifest = asked.manifest;
    let completed = app.store.run(Complete { job, pair, manifest }).await?;
    let completion = completed.completion;
    Ok(ok(&CompleteResponse {
        completed_by: completion.token.get(),
        completed_at_ms: completion.at.0,
        manifest_differs: completed.manifest_differs,
        manifest: completion.manifest,
    }))
}

/// A media type goes into a header when the output is fetched.
fn check_media_types(manifest: &Manifest) -> Result<(), Invalid> {
    for (index, output) in manifest.outputs.iter().enumerate() {
        let field = || format!("manifest.outputs[{index}].media_type");
        check_media_type("", &output.media_type)
            .map_err(|invalid| Invalid { field: field(), ..invalid })?;
    }
    Ok(())
}

/// A media type that can stand in a header.
pub(super) fn check_media_type<'a>(field: &str, text: &'a str) -> Result<&'a str, Invalid> {
    let plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let fine = text.len() <= MEDIA_TYPE_BYTES_MAX
        && text.bytes().all(plain)
        && text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    let allowed = || {
        format!("must be a media type such as video/mp4, of at most {MEDIA_TYPE_BYTES_MAX} bytes")
    };
    if fine { Ok(text) } else { Err(Invalid::new(field, text, allowed())) }
}

/// `POST /v1/jobs/{id}/fail`.
pub(crate) async fn fail(
    State(app): State<App>,
    path: Segments,
    Json(asked): Json<FailRequest>,
) -> Reply {
    let job = path.get::<JobId>("id")?;
    let pair = pair("", asked.token, &asked.lease)?;
    let kind = if asked.is_final { FailureKind::Final } else { FailureKind::Retryable };
    let failure = Failure { reason: reason(asked.reason)?, message: end_of(asked.message), kind };
    let chance = u64::try_from(app.entropy.next_u128() >> 64).expect("64 bits are left");
    let requeued = app.store.run(Fail { job, pair, failure, chance }).await?;
    Ok(ok(&shown(requeued)))
}

/// `POST /v1/jobs/{id}/release`.
pub(crate) async fn release(
    State(app): State<App>,
    path: Segments,
    Json(asked): Json<ReleaseRequest>,
) -> Reply {
    let job = path.get::<JobId>("id")?;
    let pair = pair("", asked.token, &asked.lease)?;
    let requeued = app.store.run(Release { job, pair }).await?;
    Ok(ok(&shown(requeued)))
}

fn shown(requeued: Requeued) -> RequeuedResponse {
    RequeuedResponse {
        state: requeued.state.to_string(),
        run_at_ms: requeued.run_at.map(|at| at.0),
    }
}

fn reason(given: String) -> Result<String, Invalid> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if !given.is_empty() && given.len() <= REASON_BYTES_MAX && given.bytes().all(plain) {
        return Ok(given);
    }
    let allowed = format!(
        "must be one word of at most {REASON_BYTES_MAX} lower-case letters, digits and '_'"
    );
    Err(Invalid::new("reason", &given, allowed))
}

/// The end of a message: of a tool's log it is the end that tells.
fn end_of(message: String) -> String {
    let Some(cut) = message.len().checked_sub(limits::MESSAGE_BYTES_MAX) else { return message };
    let begin = (cut..message.len()).find(|index| message.is_char_boundary(*index));
    message[begin.unwrap_or(message.len())..].to_owned()
}
