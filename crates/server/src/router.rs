//! Every route, in one list.

use axum::{
    Router,
    extract::Request,
    middleware,
    routing::{MethodRouter, get, post},
};

use crate::{
    app::App,
    edge, problems,
    problems::Reply,
    routes::{
        artefacts, attempts, blobs, claims, events, health, heartbeats, jobs, locks, object_reads,
        objects, outputs, pages, progress, recipes, submit, webhooks, wishes, workers,
    },
};

/// Each path with what it answers.
pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<App>)> {
    vec![
        ("/", get(pages::page)),
        ("/openapi.json", get(pages::openapi)),
        ("/healthz", get(health::healthz)),
        ("/readyz", get(health::readyz)),
        ("/metrics", get(health::metrics)),
        ("/v1/jobs", get(jobs::list).post(submit::submit)),
        ("/v1/jobs/{id}", get(jobs::show)),
        ("/v1/jobs/{id}/wait", get(jobs::wait)),
        ("/v1/jobs/{id}/history", get(jobs::history)),
        ("/v1/jobs/{id}/cancel", post(wishes::cancel)),
        ("/v1/jobs/{id}/retry", post(wishes::retry)),
        ("/v1/jobs/{id}/complete", post(attempts::complete)),
        ("/v1/jobs/{id}/fail", post(attempts::fail)),
        ("/v1/jobs/{id}/release", post(attempts::release)),
        ("/v1/jobs/{id}/outputs/{*name}", get(outputs::output)),
        ("/v1/claims", post(claims::claim)),
        ("/v1/heartbeats", post(heartbeats::heartbeat)),
        ("/v1/progress", post(progress::progress)),
        ("/v1/workers", get(workers::list)),
        ("/v1/workers/{name}/session", get(workers::session)),
        ("/v1/blobs/{digest}", get(blobs::get).put(blobs::put)),
        ("/v1/blobs/{digest}/pin", post(blobs::pin)),
        ("/v1/blobs/{digest}/finish", post(artefacts::finish)),
        ("/v1/artefacts", get(artefacts::show)),
        ("/v1/locks", get(locks::list)),
        ("/v1/locks/{*path}", get(locks::show).post(locks::verb)),
        ("/v1/objects", get(objects::list)),
        (
            "/v1/objects/{*key}",
            get(object_reads::get).put(objects::put).delete(objects::delete).post(objects::raise),
        ),
        ("/v1/webhooks", get(webhooks::list).post(webhooks::add)),
        ("/v1/webhooks/{id}", get(webhooks::show).delete(webhooks::remove)),
        ("/v1/webhooks/{id}/rotate", post(webhooks::rotate)),
        ("/v1/webhooks/{id}/deliveries", get(webhooks::deliveries)),
        ("/v1/deliveries/{id}/redeliver", post(webhooks::redeliver)),
        ("/v1/recipes", get(recipes::list)),
        ("/v1/events", get(events::stream)),
    ]
}

/// The whole face. What all requests pass through is named last, from the inside out.
pub(crate) fn router(app: App) -> Router {
    let mut router = Router::new();
    for (path, methods) in routes() {
        router = router.route(path, methods);
    }
    router
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn_with_state(app.clone(), edge::gate))
        .layer(middleware::from_fn(edge::drain_leftover))
        .layer(middleware::from_fn_with_state(app.clone(), edge::observe))
        .with_state(app)
}

async fn no_route(request: Request) -> Reply {
    Err(problems::no_route(request.uri().path()))
}

async fn no_method(request: Request) -> Reply {
    Err(problems::no_method(request.method().as_str(), request.uri().path()))
}
