//! Workers: who is there and holds what, and their sessions' streams.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use palisade_api::wire::{LeaseHeldView, SessionEvent, WorkerList, WorkerView};
use palisade_core::{Invalid, SessionId, WorkerName};
use palisade_store::query::{LeaseView, Query, View};

use super::ok;
use crate::{
    app::App,
    edge::{Params, Segments},
    problems::{self, Reply},
    sessions::Connection,
};

/// The media type of a session's stream.
const NDJSON: &str = "application/x-ndjson";

/// `GET /v1/workers`.
pub(crate) async fn list(State(app): State<App>, params: Params) -> Reply {
    params.finish("")?;
    let View::Leases(held) = app.store.query(Query::Leases).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let connected = app.sessions.connected();
    let mut leases: BTreeMap<SessionId, Vec<LeaseView>> = BTreeMap::new();
    for lease in held {
        leases.entry(lease.session.clone()).or_default().push(lease);
    }
    let sessions: BTreeSet<_> = connected.keys().chain(leases.keys()).cloned().collect();
    let workers = sessions.into_iter().map(|session| {
        let held = leases.remove(&session).unwrap_or_default();
        let name = held.first().map(|lease| &lease.worker).or(connected.get(&session));
        WorkerView {
            worker: name.map(WorkerName::to_string).unwrap_or_default(),
            connected: app.sessions.is_connected(&session),
            session: session.to_string(),
            leases: held.iter().map(held_view).collect(),
        }
    });
    Ok(ok(&WorkerList { workers: workers.collect() }))
}

fn held_view(view: &LeaseView) -> LeaseHeldView {
    LeaseHeldView {
        job: view.job.to_string(),
        token: view.token.get(),
        granted_at_ms: view.granted_at.0,
        deadline_ms: view.lease.deadline.0,
        ttl_ms: view.lease.ttl_ms,
    }
}

/// `GET /v1/workers/{name}/session`: a stream of events, a JSON object a line.
pub(crate) async fn session(
    State(app): State<App>,
    path: Segments,
    mut params: Params,
    method: Method,
) -> Reply {
    let worker = path.get::<WorkerName>("name")?;
    let session = params.take::<SessionId>("session")?;
    params.finish("session")?;
    let missing = || Invalid::new("session", "", "must be given: the id of this start");
    let session = session.ok_or_else(missing)?;
    if app.stopping.is_cancelled() {
        return Err(problems::stopping());
    }
    if method == Method::HEAD {
        // Its end would be taken for the worker's.
        return Ok(streamed(Body::empty(), NDJSON));
    }
    let connection = Connection::open(&app, session, worker);
    let lines = stream::unfold(Line::first(app, connection), Line::next);
    Ok(streamed(Body::from_stream(lines), NDJSON))
}

/// A stream that no proxy should keep back.
pub(super) fn streamed(body: Body, media_type: &'static str) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Where a session's stream stands.
struct Line {
    app: App,
    connection: Connection,
    opened: bool,
}

impl Line {
    fn first(app: App, connection: Connection) -> Self {
        Self { app, connection, opened: false }
    }

    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let event = if self.opened {
            tokio::select! {
                biased;
                () = self.app.stopping.cancelled() => return None,
                event = self.connection.next() => event?,
                () = tokio::time::sleep(self.app.config.ping_every) => SessionEvent::Ping,
            }
        } else {
            self.opened = true;
            SessionEvent::Open
        };
        let mut line = serde_json::to_vec(&event).expect("events always serialise");
        line.push(b'\n');
        Some((Ok(line.into()), self))
    }
}
