//! The handlers, by what they are about. Each checks its input, asks the store, and shows the
//! answer.

pub(crate) mod artefacts;
pub(crate) mod attempts;
pub(crate) mod blobs;
pub(crate) mod claims;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod heartbeats;
pub(crate) mod jobs;
mod lock_history;
pub(crate) mod locks;
pub(crate) mod object_reads;
pub(crate) mod objects;
pub(crate) mod outputs;
pub(crate) mod pages;
pub(crate) mod progress;
pub(crate) mod recipes;
pub(crate) mod submit;
pub(crate) mod webhooks;
pub(crate) mod wishes;
pub(crate) mod workers;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use palisade_core::{Invalid, JobId, Number, job::Job, lease::Pair, limits};
use palisade_store::query::{Query, View};
use serde::Serialize;

use crate::{
    app::App,
    problems::{self, Rejection},
};

/// 200 with a JSON body.
fn ok(body: &impl Serialize) -> Response {
    (StatusCode::OK, Json(body)).into_response()
}

/// One job's record.
async fn job(app: &App, id: JobId) -> Result<Job, Rejection> {
    match app.store.query(Query::Job(id)).await? {
        View::Job(Some(job)) => Ok(*job),
        View::Job(None) => Err(problems::not_found("job", id.to_string())),
        _ => unreachable!("each query is answered by its own kind"),
    }
}

/// A token and a lease id, from where they stand.
fn pair(path: &str, token: u64, lease: &str) -> Result<Pair, Invalid> {
    let at = |invalid: Invalid| if path.is_empty() { invalid } else { invalid.under(path) };
    Ok(Pair { token: Number::new(token).map_err(at)?, lease_id: lease.parse().map_err(at)? })
}

/// A whole number of a field, within what is allowed.
fn in_range(field: &str, value: u64, range: std::ops::RangeInclusive<u64>) -> Result<u64, Invalid> {
    if range.contains(&value) {
        return Ok(value);
    }
    let allowed = format!("must be a whole number from {} to {}", range.start(), range.end());
    Err(Invalid::new(field, &value.to_string(), allowed))
}

/// A list that is not longer than a batch may be.
fn in_batch(field: &str, count: usize) -> Result<(), Invalid> {
    if count <= limits::BATCH_ITEMS_MAX {
        return Ok(());
    }
    let allowed = format!("must have at most {} items", limits::BATCH_ITEMS_MAX);
    Err(Invalid::new(field, &count.to_string(), allowed))
}
