//! Blobs that go past the server: downloads from where they live, and workers that write there.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::IntoResponse,
};
use palisade_api::wire::{ArtefactsView, BlobView, FinishRequest};
use palisade_artefacts::{Place, Shown};
use palisade_core::{Digest, Invalid, Number, Refusal};
use palisade_store::{StoreExt, command::FinishBlob};

use super::{
    ok,
    outputs::{Sent, Source, disposition, send},
};
use crate::{
    app::App,
    edge::{Json, Params, Segments},
    problems::{self, Rejection, Reply},
    ranges::Wanted,
};

/// `GET /v1/artefacts`.
pub(crate) async fn show(State(app): State<App>, params: Params) -> Reply {
    params.finish("")?;
    let presign_ms =
        app.config.presign.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    Ok(ok(&ArtefactsView { url: app.config.artefacts.clone(), presign_ms }))
}

/// `POST /v1/blobs/{digest}/finish`: a worker has written a blob to its place itself.
///
/// That something of that length is there is looked at. That it has this digest is the writer's
/// word, and whoever can write there could change it later as well: the keys of the place are
/// what is trusted. Each reader compares the digest.
pub(crate) async fn finish(
    State(app): State<App>,
    path: Segments,
    Json(asked): Json<FinishRequest>,
) -> Reply {
    let digest = path.get::<Digest>("digest")?;
    if app.config.artefacts.is_none() {
        // Here nobody but the server says when something is durable.
        return Err(problems::not_found("shared place for artefacts", String::new()));
    }
    let named = |invalid| Invalid { field: "generation".to_owned(), ..invalid };
    let generation = Number::new(asked.generation).map_err(named)?;
    let there = app.blobs.size(Place::new(digest, generation)).await?;
    let Some(size_bytes) = there else {
        let field = "generation".to_owned();
        return Err(Refusal::MissingBlob { field, digests: vec![digest] }.into());
    };
    if size_bytes != asked.size_bytes {
        let allowed = format!("must be the length of what is there, {size_bytes}");
        return Err(Invalid::new("size_bytes", &asked.size_bytes.to_string(), allowed).into());
    }
    app.store.run(FinishBlob { digest, generation, size_bytes }).await?;
    Ok(ok(&BlobView { digest: digest.to_string(), size_bytes }))
}

/// Whether the client wants the bytes from the server itself: `redirect=no`.
pub(super) fn through(mut params: Params) -> Result<bool, Invalid> {
    let asked = params.take::<YesNo>("redirect")?;
    params.finish("redirect")?;
    Ok(asked.is_some_and(|asked| !asked.0))
}

struct YesNo(bool);

impl std::str::FromStr for YesNo {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "yes" => Ok(Self(true)),
            "no" => Ok(Self(false)),
            _ => Err(Invalid::new("redirect", text, "must be yes or no")),
        }
    }
}

/// Sends a file, or an address at which its bytes are to be had for a while. What can be answered
/// without the bytes is answered here.
pub(super) async fn send_or_point(
    app: &App,
    sent: Sent<'_>,
    through: bool,
    (method, headers): (&Method, &HeaderMap),
) -> Reply {
    if through || method != Method::GET {
        return send(app, sent, method, headers).await;
    }
    match point(app, &sent, headers).await? {
        Some(address) => {
            let status = StatusCode::TEMPORARY_REDIRECT;
            // The address is good for a while only, and for whoever has it.
            let cached = HeaderValue::from_static("private, no-store");
            Ok((status, [(header::LOCATION, address), (header::CACHE_CONTROL, cached)])
                .into_response())
        }
        None => send(app, sent, method, headers).await,
    }
}

async fn point(
    app: &App,
    sent: &Sent<'_>,
    headers: &HeaderMap,
) -> Result<Option<HeaderValue>, Rejection> {
    let Some(ttl) = app.config.presign else { return Ok(None) };
    let Source::At(place) = sent.source else { return Ok(None) };
    let disposition = disposition(sent);
    let shown = Shown { media_type: sent.media_type, disposition: &disposition };
    let address = match app.blobs.presigned(place, shown, ttl).await {
        Ok(address) => address.and_then(|address| HeaderValue::from_str(&address).ok()),
        Err(error) => {
            // No reason to refuse the bytes.
            tracing::warn!(
                error = palisade_core::with_causes(&error),
                "no address could be signed"
            );
            None
        }
    };
    let Some(address) = address else { return Ok(None) };
    // What is missing, or needs no bytes, is told by the server and not by the store.
    let Some(size) = app.blobs.size(place).await? else { return Ok(None) };
    match Wanted::of(headers, &sent.etag, size) {
        Wanted::Whole | Wanted::Part(..) => Ok(Some(address)),
        Wanted::NotModified | Wanted::Nothing => Ok(None),
    }
}
