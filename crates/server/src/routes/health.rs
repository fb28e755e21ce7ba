//! For probes and for those who watch.

use std::{future::Future, time::Duration};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use palisade_artefacts::{Blobs, Place};
use palisade_core::{Digest, Number, job::JobState, with_causes};
use palisade_store::{
    Failure, Store,
    query::{LeaseView, Query, View},
};
use serde_json::json;

use super::ok;
use crate::{
    app::App,
    metrics::Gauge,
    problems::{self, Reply},
};

/// How long a look at the store or at the blobs may take. Less than probes usually wait (5 s and
/// more), so that a probe hears what is away, instead of nothing.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// `GET /healthz`: the process answers.
pub(crate) async fn healthz() -> Response {
    ok(&json!({ "status": "ok" }))
}

/// `GET /readyz`: it can serve, because its store answers.
///
/// Blobs that are out of reach are told, and do not make it unready: claims, heartbeats and locks
/// need none, and the other servers have the same bucket. A balancer that took all of them away
/// would make an outage of the bucket one of everything.
pub(crate) async fn readyz(State(app): State<App>) -> Reply {
    if app.stopping.is_cancelled() {
        return Err(problems::stopping());
    }
    let counts = in_time(app.store.query(Query::Counts));
    let (counts, blobs) = tokio::join!(counts, blobs_answer(&*app.blobs));
    counts?;
    if blobs {
        return Ok(ok(&json!({ "status": "ready" })));
    }
    Ok(ok(&json!({ "status": "ready", "blobs": "unreachable" })))
}

/// A query's answer, or that the store took too long for it.
async fn in_time<T>(asked: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let late = |_| Failure::Unavailable(format!("no answer within {LOOK_WITHIN:?}"));
    tokio::time::timeout(LOOK_WITHIN, asked).await.map_err(late)?
}

async fn counts(store: &dyn Store) -> Result<Vec<(JobState, u64)>, Failure> {
    let View::Counts(counts) = store.query(Query::Counts).await? else {
        unreachable!("each query is answered by its own kind");
    };
    Ok(counts)
}

async fn leases(store: &dyn Store) -> Result<Vec<LeaseView>, Failure> {
    let View::Leases(leases) = store.query(Query::Leases).await? else {
        unreachable!("each query is answered by its own kind");
    };
    Ok(leases)
}

/// Whether the blobs answer, whatever they answer.
async fn blobs_answer(blobs: &dyn Blobs) -> bool {
    let look = blobs.size(Place::new(Digest::of(b""), Number::ZERO));
    let why = match tokio::time::timeout(LOOK_WITHIN, look).await {
        Ok(Ok(_)) => return true,
        Ok(Err(error)) => with_causes(&error),
        Err(_) => format!("no answer within {LOOK_WITHIN:?}"),
    };
    tracing::warn!(why, "the storage of blobs cannot be reached");
    false
}

/// `GET /metrics`, as Prometheus reads it. While the store is away, what is known without it.
pub(crate) async fn metrics(State(app): State<App>) -> Response {
    let (counts, leases) = tokio::join!(in_time(counts(&*app.store)), in_time(leases(&*app.store)));
    let single = |name, help, value: usize| Gauge {
        name,
        help,
        values: vec![(String::new(), value as u64)],
    };
    let is_up = usize::from(counts.is_ok() && leases.is_ok());
    let mut gauges = vec![single("palisade_store_up", "Whether the store answers: 1 or 0.", is_up)];
    match (counts, leases) {
        (Ok(counts), Ok(leases)) => {
            let now = app.store.now();
            let lapsed = leases.iter().filter(|view| !view.lease.is_within(now)).count();
            let jobs =
                counts.iter().map(|(state, count)| (format!("{{state=\"{state}\"}}"), *count));
            gauges.extend([
                Gauge { name: "palisade_jobs", help: "Jobs by state.", values: jobs.collect() },
                single("palisade_leases", "Attempts that are open.", leases.len()),
                single("palisade_leases_lapsed", "Open attempts past their deadline.", lapsed),
            ]);
        }
        (Err(why), _) | (_, Err(why)) => tracing::warn!(%why, "figures without the store's"),
    }
    gauges.extend([
        single("palisade_claims_waiting", "Claims that wait here.", app.claims.waiting()),
        single(
            "palisade_lock_waiters",
            "Requests for locks that wait here in a queue.",
            app.lock_waits.waiting(),
        ),
        single(
            "palisade_lock_requests_open",
            "Requests for locks that wait here or are being answered.",
            app.lock_waits.open(),
        ),
        single(
            "palisade_sessions",
            "Workers' sessions connected here.",
            app.sessions.connected().len(),
        ),
    ]);
    let media_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (media_type, app.metrics.text(&gauges)).into_response()
}
