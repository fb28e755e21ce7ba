//! Blobs: bytes in, hashed as they arrive, and bytes out.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Method},
};
use palisade_api::wire::{BlobView, PinRequest, PinResponse};
use palisade_artefacts::{Place, Upload};
use palisade_core::{Digest, Invalid, JobId, LeaseId, Number, blob::BlobState, lease::Pair};
use palisade_store::{
    StoreExt,
    command::{BeginBlob, FinishBlob, Pin},
    query::{Query, View},
};

use super::{
    artefacts::{send_or_point, through},
    ok,
    outputs::{Sent, Source, digest_tag},
    pair,
};
use crate::{
    app::App,
    edge::{Json, Params, Pieces, Segments, refuse_announced},
    problems::{self, Rejection, Reply},
};

/// The headers that pin an upload to an attempt: all three, or none for an input.
const PIN_HEADERS: [&str; 3] = ["palisade-job", "fencing-token", "fencing-lease"];

/// `PUT /v1/blobs/{digest}`.
pub(crate) async fn put(State(app): State<App>, path: Segments, request: Request) -> Reply {
    let digest = path.get::<Digest>("digest")?;
    let pin = match pin_of(request.headers())? {
        Some((job, pair)) => Pin::Attempt(job, pair),
        None => until(&app),
    };
    refuse_announced(request.headers(), app.config.blob_bytes_max)?;
    let began = app.store.run(BeginBlob { digest, pin }).await?;
    let place = Place::new(digest, began.generation);
    if let (true, Some(size_bytes)) = (began.present, began.size_bytes)
        && is_there(&app, place).await
    {
        return Ok(ok(&BlobView { digest: digest.to_string(), size_bytes }));
    }
    let size_bytes = receive(&app, place, request.into_body()).await?;
    let finish = FinishBlob { digest, generation: began.generation, size_bytes };
    app.store.run(finish).await?;
    Ok(ok(&BlobView { digest: digest.to_string(), size_bytes }))
}

/// Writes what arrives. Answers its length once it is durable; upon an error nothing is left.
async fn receive(app: &App, place: Place, body: Body) -> Result<u64, Rejection> {
    let mut upload: Box<dyn Upload> =
        app.blobs.begin(Some(place), app.config.blob_bytes_max).await?;
    let mut pieces = Pieces::new(body, app.config.body_stall);
    while let Some(piece) = pieces.next().await? {
        upload.write(piece).await?;
    }
    let staged = upload.finish().await?;
    let size_bytes = staged.size();
    staged.place(place.generation).await?;
    Ok(size_bytes)
}

fn until(app: &App) -> Pin {
    Pin::Until(app.store.now().plus_ms(app.config.input_pin_ms))
}

/// The attempt that the headers name. None: they name none.
fn pin_of(headers: &HeaderMap) -> Result<Option<(JobId, Pair)>, Invalid> {
    let mut texts = Vec::new();
    for name in PIN_HEADERS {
        if let Some(value) = headers.get(name) {
            texts.push(value.to_str().unwrap_or("?"));
        }
    }
    let [job, token, lease] = texts.as_slice() else {
        let missing = PIN_HEADERS.into_iter().find(|name| !headers.contains_key(*name));
        return match missing {
            Some(missing) if !texts.is_empty() => {
                let allowed = format!("must be given; {} go together", PIN_HEADERS.join(", "));
                Err(Invalid::new(missing, "", allowed))
            }
            _ => Ok(None),
        };
    };
    let named = |field: &'static str| move |invalid| Invalid { field: field.to_owned(), ..invalid };
    let job = job.parse().map_err(named(PIN_HEADERS[0]))?;
    let token = token.parse::<Number>().map_err(named(PIN_HEADERS[1]))?;
    let lease_id = lease.parse::<LeaseId>().map_err(named(PIN_HEADERS[2]))?;
    Ok(Some((job, Pair { token, lease_id })))
}

/// `POST /v1/blobs/{digest}/pin`.
pub(crate) async fn pin(
    State(app): State<App>,
    path: Segments,
    Json(asked): Json<PinRequest>,
) -> Reply {
    let digest = path.get::<Digest>("digest")?;
    let pin = match (asked.job, asked.pair) {
        (None, None) => until(&app),
        (Some(job), Some(shown)) => {
            Pin::Attempt(job.parse()?, pair("pair", shown.token, &shown.lease)?)
        }
        (Some(_), None) => {
            let allowed = "must be given; job and pair go together";
            return Err(Invalid::new("pair", "", allowed).into());
        }
        (None, Some(_)) => {
            let allowed = "must be given; job and pair go together";
            return Err(Invalid::new("job", "", allowed).into());
        }
    };
    let place = app.store.run(BeginBlob { digest, pin }).await?;
    let present = place.present && is_there(&app, Place::new(digest, place.generation)).await;
    let generation = (!present).then_some(place.generation.get());
    let size_bytes = place.size_bytes.filter(|_| present);
    Ok(ok(&PinResponse { present, size_bytes, generation }))
}

/// Whether what the records call present is at its place. A bucket may have lost it, or be a copy
/// that is older than the records: whoever has the bytes brings them again then, to the same place,
/// for its name follows from them. A place that cannot be looked at counts as there: the records
/// are right about it nearly always.
async fn is_there(app: &App, place: Place) -> bool {
    let there = !matches!(app.blobs.size(place).await, Ok(None));
    if !there {
        let digest = place.digest;
        tracing::error!(%digest, "a blob is missing at its place; it may be brought again");
    }
    there
}

/// `GET` and `HEAD /v1/blobs/{digest}`.
pub(crate) async fn get(
    State(app): State<App>,
    path: Segments,
    params: Params,
    method: Method,
    headers: HeaderMap,
) -> Reply {
    let digest = path.get::<Digest>("digest")?;
    let through = through(params)?;
    let place = place_of(&app, digest).await?;
    let (etag, source) = (digest_tag(place), Source::At(place));
    let sent = Sent { source, media_type: "application/octet-stream", file_name: None, etag };
    send_or_point(&app, sent, through, (&method, &headers)).await
}

/// Where a blob's bytes are, if they are.
pub(super) async fn place_of(app: &App, digest: Digest) -> Result<Place, Rejection> {
    let View::Blob(blob) = app.store.query(Query::Blob(digest)).await? else {
        unreachable!("each query is answered by its own kind");
    };
    blob.filter(|blob| blob.state == BlobState::Present)
        .map(|blob| Place::new(digest, blob.generation))
        .ok_or_else(|| problems::not_found("blob", digest.to_string()))
}
