//! Reading fenced objects: a holder's bytes, a published manifest, or a file of what is published.

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, header},
};
use palisade_api::wire::MANIFEST_MEDIA_TYPE;
use palisade_artefacts::Place;
use palisade_core::{
    JobId, ObjectKey, Refusal,
    manifest::{Manifest, Output},
    object::{Content, Object},
};
use palisade_store::query::{Query, Resolved, View};

use super::{
    blobs::place_of,
    objects::{etag, tell_numbers},
    outputs::{Sent, Source, send},
};
use crate::{
    app::App,
    edge::{Params, Segments},
    problems::{self, Rejection, Reply},
};

/// Whose outputs a published name shows, on answers.
const JOB: &str = "palisade-job";

/// `GET` and `HEAD /v1/objects/{key}`: the object of that key or, where there is none to read, the
/// file of that path in the longest published name that it lies under.
pub(crate) async fn get(
    State(app): State<App>,
    path: Segments,
    params: Params,
    method: Method,
    headers: HeaderMap,
) -> Reply {
    let key = path.get::<ObjectKey>("key")?;
    params.finish("")?;
    let View::Resolve(resolved) = app.store.query(Query::Resolve(key.clone())).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let missing = || problems::not_found("object", key.to_string());
    let Resolved { object, manifest } = *resolved.ok_or_else(missing)?;
    check_same(&headers, &object)?;
    let read = Read { app: &app, key: &key, object: &object };
    let (source, media_type, of_job) = match (&object.content, &manifest) {
        (Some(Content::Blob { digest, generation, media_type, .. }), _) => {
            (Source::At(Place::new(*digest, *generation)), media_type.as_str(), None)
        }
        (Some(Content::Manifest { job, .. }), Some(manifest)) => {
            let (source, media_type, path) = read.published(manifest).await?;
            (source, media_type, Some((*job, path)))
        }
        (Some(Content::Manifest { .. }), None) | (None, _) => return Err(missing()),
    };
    let file_name = key.as_str().rsplit('/').next();
    let sent = Sent { source, media_type, file_name, etag: etag(&object) };
    let mut response = send(&app, sent, &method, &headers).await?;
    tell_numbers(&mut response, &object);
    if let Some((job, path)) = of_job {
        tell_job(response.headers_mut(), job, path);
    }
    Ok(response)
}

/// What is read under which key.
#[derive(Clone, Copy)]
struct Read<'a> {
    app: &'a App,
    key: &'a ObjectKey,
    object: &'a Object,
}

impl Read<'_> {
    /// The manifest itself, or one of its files: its bytes, its type, and its path.
    async fn published(
        self,
        manifest: &Manifest,
    ) -> Result<(Source, &str, Option<&str>), Rejection> {
        let below = self.key.as_str().strip_prefix(self.object.key.as_str());
        let path = below.expect("it was found by a part of the key").strip_prefix('/');
        let Some(path) = path else {
            let json = serde_json::to_vec(manifest).expect("records always serialise");
            return Ok((Source::Here(Bytes::from(json)), MANIFEST_MEDIA_TYPE, None));
        };
        let named = |output: &&Output| output.name.as_str() == path;
        let missing = || problems::not_found("object", self.key.to_string());
        let output = manifest.outputs.iter().find(named).ok_or_else(missing)?;
        let place = place_of(self.app, output.digest).await?;
        Ok((Source::At(place), &output.media_type, Some(output.name.as_str())))
    }
}

/// Whoever reads several files of one version names it, and is told when another has come.
fn check_same(headers: &HeaderMap, object: &Object) -> Result<(), Rejection> {
    let Some(wanted) = headers.get(header::IF_MATCH) else { return Ok(()) };
    let here = etag(object);
    let wanted = wanted.to_str().unwrap_or_default();
    if wanted.split(',').any(|tag| tag.trim() == "*" || tag.trim() == here) {
        return Ok(());
    }
    Err(Refusal::ConditionFailed { version: Some(object.last.version) }.into())
}

/// Whose outputs these are, and where these very bytes stay though the name moves on.
fn tell_job(headers: &mut HeaderMap, job: JobId, path: Option<&str>) {
    let text = |text: String| HeaderValue::from_str(&text).expect("ids and names fit a header");
    headers.insert(JOB, text(job.to_string()));
    if let Some(path) = path {
        let place = format!("/v1/jobs/{job}/outputs/{path}");
        headers.insert(header::CONTENT_LOCATION, text(place));
    }
}
