//! For probes and for those who watch.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use palisade_artefacts::Place;
use palisade_core::{Digest, Number};
use palisade_store::query::{Query, View};
use serde_json::json;

use super::ok;
use crate::{
    app::App,
    metrics::Gauge,
    problems::{self, Reply},
};

/// `GET /healthz`: the process answers.
pub(crate) async fn healthz() -> Response {
    ok(&json!({ "status": "ok" }))
}

/// `GET /readyz`: it can serve, because its store and its blobs answer.
pub(crate) async fn readyz(State(app): State<App>) -> Reply {
    if app.stopping.is_cancelled() {
        return Err(problems::stopping());
    }
    app.store.query(Query::Counts).await?;
    app.blobs.size(Place::new(Digest::of(b""), Number::ZERO)).await?;
    Ok(ok(&json!({ "status": "ready" })))
}

/// `GET /metrics`, as Prometheus reads it.
pub(crate) async fn metrics(State(app): State<App>) -> Reply {
    let View::Counts(counts) = app.store.query(Query::Counts).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let View::Leases(leases) = app.store.query(Query::Leases).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let now = app.store.now();
    let lapsed = leases.iter().filter(|view| !view.lease.is_within(now)).count();
    let jobs = counts.iter().map(|(state, count)| (format!("{{state=\"{state}\"}}"), *count));
    let single = |name, help, value: usize| Gauge {
        name,
        help,
        values: vec![(String::new(), value as u64)],
    };
    let gauges = [
        Gauge { name: "palisade_jobs", help: "Jobs by state.", values: jobs.collect() },
        single("palisade_leases", "Attempts that are open.", leases.len()),
        single("palisade_leases_lapsed", "Open attempts past their deadline.", lapsed),
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
    ];
    let media_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((media_type, app.metrics.text(&gauges)).into_response())
}
