//! Every request passes here: it is counted, its line is logged, and its panic is caught.

use std::{any::Any, panic::AssertUnwindSafe};

use axum::{
    extract::{MatchedPath, Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;

use crate::{
    app::App,
    problems::{self, Rejection},
};

/// Runs a request; counts and logs it.
pub(crate) async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let begun = app.store.now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or_else(|| "none".to_owned(), |matched| matched.as_str().to_owned());
    let run = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let response =
        run.unwrap_or_else(|panic| problems::panicked(panic_text(&*panic)).into_response());
    app.metrics.count(&method, &route, response.status().as_u16());
    log(&method, &path, &response, app.store.now().since_ms(begun));
    response
}

fn log(method: &Method, path: &str, response: &Response, ms: u64) {
    let status = response.status().as_u16();
    tracing::debug!(%method, path, status, ms, "request");
    let Some(rejection) = response.extensions().get::<Rejection>() else { return };
    let (code, detail) = (&rejection.problem().code, &rejection.problem().detail);
    let internal = rejection.internal_text();
    match weight(status, rejection) {
        Weight::Expected => tracing::debug!(%method, path, status, code, detail, "refused"),
        Weight::Refusal => tracing::info!(%method, path, status, code, detail, "refused"),
        Weight::Fault => tracing::error!(%method, path, status, code, detail, internal, "fault"),
    }
}

/// How much an answer that is none says of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// Nothing: it was told to stop, and says so.
    Expected,
    /// Of whoever asked.
    Refusal,
    /// Something is broken here.
    Fault,
}

fn weight(status: u16, rejection: &Rejection) -> Weight {
    match status {
        _ if rejection.is_expected() => Weight::Expected,
        500.. => Weight::Fault,
        _ => Weight::Refusal,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_else(|| "of no text".to_owned()))
}

#[cfg(test)]
mod tests;
