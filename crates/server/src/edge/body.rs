//! Bodies: JSON of bounded length, and streams of bytes that may not stall.

use std::time::Duration;

use axum::{
    body::{Body, BodyDataStream, Bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use futures_util::StreamExt;
use palisade_core::Invalid;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::unfit::{must_be_object, not_json, unfit};
use crate::{
    app::App,
    problems::{self, Rejection},
};

/// A JSON body, in the shape of `T`.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Rejection;

    async fn from_request(request: Request, app: &App) -> Result<Self, Rejection> {
        json_from_slice(&json_bytes(request, app).await?).map(Json)
    }
}

/// The bytes of a JSON body.
pub(crate) async fn json_bytes(request: Request, app: &App) -> Result<Vec<u8>, Rejection> {
    // A page of another site cannot send this type without being asked first, so it is required.
    must_be_json(request.headers())?;
    let bytes_max = app.config.json_bytes_max;
    let too_large = || problems::too_large(bytes_max as u64);
    if content_length(request.headers()).is_some_and(|length| length > bytes_max as u64) {
        return Err(too_large());
    }
    let mut pieces = Pieces::new(request.into_body(), app.config.body_stall);
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await? {
        if bytes.len() + piece.len() > bytes_max {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn must_be_json(headers: &HeaderMap) -> Result<(), Rejection> {
    let given = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let essence = given.and_then(|given| given.split(';').next()).unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(problems::media_type(given.unwrap_or_default(), "application/json"))
}

/// The length that a request announces.
fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads JSON, and names the field that is wrong.
pub(crate) fn json_from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Rejection> {
    // JSON is UTF-8, and that is looked at before any field is.
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        // A field may be wrong before the place where the text stops being JSON at all.
        match serde_json::from_str::<IgnoredAny>(text) {
            Err(broken) => not_json(&broken),
            Ok(IgnoredAny) => unfit(&error),
        }
    })?;
    json.end().map_err(|error| not_json(&error))?;
    must_be_object(text)?;
    Ok(value)
}

/// The same for JSON that has been read already.
pub(crate) fn json_from_value<T: DeserializeOwned>(value: Value) -> Result<T, Rejection> {
    serde_path_to_error::deserialize(value).map_err(|error| unfit(&error))
}

fn not_utf8(bytes: &[u8], valid_up_to: usize) -> Rejection {
    let lines: Vec<_> = bytes[..valid_up_to].split(|byte| *byte == b'\n').collect();
    let (line, column) = (lines.len(), lines.last().map_or(0, |last| last.len()) + 1);
    problems::malformed("it is not UTF-8", line, column)
}

/// A body, piece by piece.
pub(crate) struct Pieces {
    stream: BodyDataStream,
    stall: Duration,
}

impl Pieces {
    pub(crate) fn new(body: Body, stall: Duration) -> Self {
        Self { stream: body.into_data_stream(), stall }
    }

    /// The next piece. None: all of it has come.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Rejection> {
        match tokio::time::timeout(self.stall, self.stream.next()).await {
            Err(_) => Err(problems::interrupted(408, "the body stalled; nothing was done")),
            Ok(None) => Ok(None),
            Ok(Some(Ok(piece))) => Ok(Some(piece)),
            Ok(Some(Err(_))) => {
                Err(problems::interrupted(400, "the body ended before all of it had come"))
            }
        }
    }
}

/// Refuses a body that announces more than `bytes_max`, before any of it is read.
pub(crate) fn refuse_announced(headers: &HeaderMap, bytes_max: u64) -> Result<(), Rejection> {
    match headers.get(header::CONTENT_LENGTH) {
        Some(value) if content_length(headers).is_none() => {
            let given = value.to_str().unwrap_or("?");
            Err(Invalid::new("content-length", given, "must be a number of bytes").into())
        }
        _ if content_length(headers).is_some_and(|length| length > bytes_max) => {
            Err(problems::too_large(bytes_max))
        }
        _ => Ok(()),
    }
}
