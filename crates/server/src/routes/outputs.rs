//! What was made, as files: whole, or in the parts that a player asks for.

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::TryStreamExt;
use palisade_artefacts::Place;
use palisade_core::{JobId, OutputName, Refusal};

use super::{
    artefacts::{send_or_point, through},
    blobs::place_of,
    job,
};
use crate::{
    app::App,
    edge::{Params, Segments},
    problems::{self, Reply},
    ranges::Wanted,
};

/// `GET` and `HEAD /v1/jobs/{id}/outputs/{*name}`.
pub(crate) async fn output(
    State(app): State<App>,
    path: Segments,
    params: Params,
    method: Method,
    headers: HeaderMap,
) -> Reply {
    let id = path.get::<JobId>("id")?;
    let name = path.get::<OutputName>("name")?;
    let through = through(params)?;
    let job = job(&app, id).await?;
    let Some(completion) = &job.completion else {
        let allowed = "outputs are there once it is complete";
        return Err(Refusal::WrongState { job: id, state: job.state, allowed }.into());
    };
    let output = completion.manifest.outputs.iter().find(|output| output.name == name);
    let output = output.ok_or_else(|| problems::not_found("output", name.to_string()))?;
    let place = place_of(&app, output.digest).await?;
    let file_name = name.as_str().rsplit('/').next();
    let (etag, source) = (digest_tag(place), Source::At(place));
    let sent = Sent { source, media_type: &output.media_type, file_name, etag };
    send_or_point(&app, sent, through, (&method, &headers)).await
}

/// A file to send.
pub(super) struct Sent<'a> {
    /// Its bytes.
    pub(super) source: Source,
    /// What it is.
    pub(super) media_type: &'a str,
    /// Under which name a browser keeps it; letters, digits and `._-:@+=,` alone.
    pub(super) file_name: Option<&'a str>,
    /// What tells it from others, in quotes.
    pub(super) etag: String,
}

/// Where a file's bytes come from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A blob.
    At(Place),
    /// They are made here.
    Here(Bytes),
}

/// The tag of bytes that never change under their name.
pub(super) fn digest_tag(place: Place) -> String {
    format!("\"{}\"", place.digest)
}

/// Sends a file, or the part of it that is wanted.
pub(super) async fn send(app: &App, sent: Sent<'_>, method: &Method, headers: &HeaderMap) -> Reply {
    let size = size(app, &sent.source).await?;
    let mut wanted = Wanted::of(headers, &sent.etag, size);
    if method == Method::HEAD && wanted != Wanted::NotModified {
        // Ranges are defined for GET alone.
        wanted = Wanted::Whole;
    }
    let (status, length) = match wanted {
        Wanted::Nothing => return Err(problems::out_of_range(size)),
        Wanted::NotModified => (StatusCode::NOT_MODIFIED, None),
        Wanted::Whole => (StatusCode::OK, Some(size)),
        Wanted::Part(start, end) => (StatusCode::PARTIAL_CONTENT, Some(end - start)),
    };
    let has_body = length.is_some() && method != Method::HEAD;
    let body = if has_body { body(app, &sent.source, wanted).await? } else { Body::empty() };
    let mut response = (status, body).into_response();
    describe(&mut response, &sent);
    let headers = response.headers_mut();
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    if let Wanted::Part(start, end) = wanted {
        let range = HeaderValue::from_str(&format!("bytes {start}-{}/{size}", end - 1));
        headers.insert(header::CONTENT_RANGE, range.expect("digits fit a header"));
    }
    Ok(response)
}

async fn size(app: &App, source: &Source) -> Result<u64, problems::Rejection> {
    let place = match source {
        Source::At(place) => *place,
        Source::Here(bytes) => return Ok(bytes.len() as u64),
    };
    let size = app.blobs.size(place).await?;
    size.ok_or_else(|| {
        // Its row says that it is there: not a question of asking for the wrong thing.
        tracing::error!(%place, "a blob that should be there is not");
        problems::not_found("blob", place.digest.to_string())
    })
}

async fn body(app: &App, source: &Source, wanted: Wanted) -> Result<Body, problems::Rejection> {
    let place = match source {
        Source::At(place) => *place,
        Source::Here(bytes) => return Ok(Body::from(wanted.of_bytes(bytes))),
    };
    let reader = app.blobs.open(place, wanted.range()).await?;
    // The status has gone out by then: the connection breaks, and the client sees a file cut off.
    let chunks = reader.chunks.inspect_err(move |error| {
        let error = palisade_core::with_causes(error);
        tracing::error!(%place, error, "a blob broke off while sent");
    });
    Ok(Body::from_stream(chunks))
}

/// What is said of a file. Its type comes from whoever made it, so a browser is told to believe it
/// and to run nothing that it holds.
fn describe(response: &mut Response, sent: &Sent<'_>) {
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("application/octet-stream");
    let media_type = HeaderValue::from_str(sent.media_type).unwrap_or(plain);
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    let etag = HeaderValue::from_str(&sent.etag).expect("digits in quotes fit a header");
    headers.insert(header::ETAG, etag);
    // The bytes under this name never change, but who may see them can.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(disposition) = HeaderValue::from_str(&disposition(sent)) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
}

/// Whether a browser shows the file or keeps it, and under which name.
pub(super) fn disposition(sent: &Sent<'_>) -> String {
    match sent.file_name {
        Some(name) => format!("{}; filename=\"{name}\"", how_shown(sent.media_type)),
        None => "attachment".to_owned(),
    }
}

/// Films, sounds and pictures are shown in the page; anything else is kept as a file.
fn how_shown(media_type: &str) -> &'static str {
    let shown = ["video/", "audio/", "image/"].iter().any(|kind| media_type.starts_with(kind));
    if shown { "inline" } else { "attachment" }
}
