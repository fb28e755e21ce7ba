//! Fenced objects: bytes first, then the pointer, in one transaction with the look at the pair.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use palisade_api::wire::{MANIFEST_MEDIA_TYPE, ObjectList, ObjectView, PairWire};
use palisade_core::{
    Digest, Invalid, Number, ObjectKey,
    lease::Pair,
    object::{Condition, Content, Object},
};
use palisade_store::{
    StoreExt,
    command::{BeginBlob, DeleteObject, FinishBlob, Pin, PutObject, RaiseObject},
    query::{Query, View},
};

use super::{attempts::check_media_type, locks::page, ok, pair};
use crate::{
    app::App,
    edge::{Params, Pieces, Segments, Text, json_bytes, json_from_slice, refuse_announced},
    problems::{self, Rejection, Reply},
};

/// Who writes: the token.
const TOKEN: &str = "fencing-token";
/// Who writes: the lease id.
const LEASE: &str = "fencing-lease";
/// Which of its writes to this key it is.
const OP: &str = "fencing-op";
/// The lowest token still accepted, on answers.
const FENCE: &str = "fencing-fence";

/// `PUT /v1/objects/{key}`.
pub(crate) async fn put(State(app): State<App>, path: Segments, request: Request) -> Reply {
    let key = path.get::<ObjectKey>("key")?;
    let headers = request.headers();
    let (pair, op, condition) = (pair_of(headers)?, op_of(headers)?, condition_of(headers)?);
    let media_type = match text(headers, header::CONTENT_TYPE.as_str())? {
        None => "application/octet-stream",
        Some(given) => check_media_type("content-type", given)?,
    };
    let media_type = media_type.to_owned();
    refuse_announced(headers, app.config.blob_bytes_max)?;
    // Pinned until long after the transaction that names it, or refuses it.
    let pin = Pin::Until(app.store.now().plus_ms(app.config.input_pin_ms));
    let (digest, generation) = receive(&app, pin, request.into_body()).await?;
    let put = PutObject { key, pair, op, digest, generation, media_type, condition };
    let written = app.store.run(put).await?;
    Ok(answered(&written.object))
}

/// Brings the bytes. They are durable when this answers, and nobody names them yet.
async fn receive(app: &App, pin: Pin, body: Body) -> Result<(Digest, Number), Rejection> {
    let mut upload = app.blobs.begin(None, app.config.blob_bytes_max).await?;
    let mut pieces = Pieces::new(body, app.config.body_stall);
    while let Some(piece) = pieces.next().await? {
        upload.write(piece).await?;
    }
    let staged = upload.finish().await?;
    let (digest, size_bytes) = (staged.digest(), staged.size());
    let place = app.store.run(BeginBlob { digest, pin }).await?;
    if !place.present {
        staged.place(place.generation).await?;
        let generation = place.generation;
        app.store.run(FinishBlob { digest, generation, size_bytes }).await?;
    }
    Ok((digest, place.generation))
}

/// `DELETE /v1/objects/{key}`.
pub(crate) async fn delete(
    State(app): State<App>,
    path: Segments,
    params: Params,
    headers: HeaderMap,
) -> Reply {
    let key = path.get::<ObjectKey>("key")?;
    params.finish("")?;
    let (pair, op, condition) = (pair_of(&headers)?, op_of(&headers)?, condition_of(&headers)?);
    let written = app.store.run(DeleteObject { key, pair, op, condition }).await?;
    Ok(answered(&written.object))
}

/// `POST /v1/objects/{key}/fence`.
pub(crate) async fn raise(State(app): State<App>, path: Segments, request: Request) -> Reply {
    let whole = path.get::<Text>("key")?.0;
    let Some(key) = whole.strip_suffix("/fence") else {
        let verbs = "POST /v1/objects/KEY/fence; content is written with PUT";
        return Err(problems::no_verb(request.uri().path(), verbs));
    };
    let key = key.parse::<ObjectKey>()?;
    let shown: PairWire = json_from_slice(&json_bytes(request, &app).await?)?;
    let pair = pair("", shown.token, &shown.lease)?;
    let raised = app.store.run(RaiseObject { key, pair }).await?;
    Ok(answered(&raised.object))
}

/// `GET /v1/objects`.
pub(crate) async fn list(State(app): State<App>, params: Params) -> Reply {
    let page = page(params)?;
    let limit = page.limit - 1;
    let View::Objects(mut objects) = app.store.query(Query::Objects(page)).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let more = objects.len() > limit;
    objects.truncate(limit);
    let next_cursor = objects.last().filter(|_| more).map(|object| object.key.to_string());
    Ok(ok(&ObjectList { objects: objects.iter().map(view).collect(), next_cursor }))
}

fn answered(object: &Object) -> Response {
    let mut response = ok(&view(object));
    tell_numbers(&mut response, object);
    let etag = HeaderValue::from_str(&etag(object)).expect("digits in quotes fit a header");
    response.headers_mut().insert(header::ETAG, etag);
    response
}

/// The number that wrote, and what is accepted from now on.
pub(super) fn tell_numbers(response: &mut Response, object: &Object) {
    let headers = response.headers_mut();
    headers.insert(TOKEN, HeaderValue::from(object.last.number.get()));
    headers.insert(FENCE, HeaderValue::from(object.fence.get()));
}

/// It names the version, not the bytes: the same bytes written again are another version.
pub(super) fn etag(object: &Object) -> String {
    format!("\"{}\"", object.last.version)
}

fn view(object: &Object) -> ObjectView {
    let mut view = ObjectView {
        key: object.key.to_string(),
        fence: object.fence.get(),
        token: object.last.number.get(),
        op: object.last.op,
        version: object.last.version.get(),
        written_at_ms: object.last.at.0,
        job: None,
        digest: None,
        size_bytes: None,
        media_type: None,
    };
    match &object.content {
        Some(Content::Blob { digest, size_bytes, media_type, .. }) => {
            view.digest = Some(digest.to_string());
            view.size_bytes = Some(*size_bytes);
            view.media_type = Some(media_type.clone());
        }
        Some(Content::Manifest { job, .. }) => {
            view.job = Some(job.to_string());
            view.media_type = Some(MANIFEST_MEDIA_TYPE.to_owned());
        }
        None => {}
    }
    view
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Invalid> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    value.to_str().map(Some).map_err(|_| Invalid::new(name, "?", "must be ASCII text"))
}

fn required<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Invalid> {
    let missing = || Invalid::new(name, "", "must be given: a fenced write shows its pair");
    text(headers, name)?.ok_or_else(missing)
}

fn pair_of(headers: &HeaderMap) -> Result<Pair, Invalid> {
    let named = |field: &'static str| move |invalid| Invalid { field: field.to_owned(), ..invalid };
    let token = required(headers, TOKEN)?.parse().map_err(named(TOKEN))?;
    let lease_id = required(headers, LEASE)?.parse().map_err(named(LEASE))?;
    Ok(Pair { token, lease_id })
}

fn op_of(headers: &HeaderMap) -> Result<u64, Invalid> {
    let Some(given) = text(headers, OP)? else { return Ok(1) };
    let number = given.parse::<Number>().ok().map(Number::get).filter(|op| *op > 0);
    number.ok_or_else(|| Invalid::new(OP, given, "must be a whole number from 1, below 2^53"))
}

fn condition_of(headers: &HeaderMap) -> Result<Condition, Invalid> {
    let (same, other) = (header::IF_MATCH.as_str(), header::IF_NONE_MATCH.as_str());
    match (text(headers, same)?, text(headers, other)?) {
        (None, None) => Ok(Condition::None),
        (Some("*"), None) => Ok(Condition::Exists),
        (Some(tag), None) => {
            let opaque = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"');
            let opaque = opaque.and_then(|tag| tag.strip_suffix('"'));
            let Some(opaque) = opaque.filter(|opaque| !opaque.contains('"')) else {
                return Err(Invalid::new(same, tag, "must be * or one ETag, in its quotes"));
            };
            // A weak one, or one that is none of ours, is of no version that there ever was.
            let version = opaque.parse().ok().filter(|_| !tag.starts_with("W/"));
            Ok(Condition::Version(version.unwrap_or(Number::ZERO)))
        }
        (None, Some("*")) => Ok(Condition::Absent),
        (None, Some(tag)) => Err(Invalid::new(other, tag, "must be *")),
        (Some(tag), Some(_)) => {
            Err(Invalid::new(same, tag, "must not be given together with if-none-match"))
        }
    }
}
