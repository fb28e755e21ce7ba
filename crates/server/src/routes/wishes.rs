//! Withdrawing a wish, and asking for another try.

use axum::extract::State;
use palisade_api::wire::{CancelRequest, CancelResponse, RetryRequest, RetryResponse};
use palisade_core::{Invalid, JobId, Number, RequestId, transition::Which};
use palisade_store::{
    StoreExt,
    command::{Cancel, Retry},
};

use super::{job, ok};
use crate::{
    app::App,
    edge::{Json, Segments},
    problems::{Rejection, Reply},
};

/// `POST /v1/jobs/{id}/cancel`.
pub(crate) async fn cancel(
    State(app): State<App>,
    path: Segments,
    Json(asked): Json<CancelRequest>,
) -> Reply {
    let id = path.get::<JobId>("id")?;
    let request_id = request_id(asked.request_id)?;
    let which = match (asked.all, submission(asked.submission)?) {
        (true, None) => Which::All,
        (false, Some(number)) => Which::One(number),
        (false, None) => only_submission(&app, id).await?,
        (true, Some(number)) => {
            let allowed = "must not be given together with \"all\"";
            return Err(Invalid::new("submission", &number.to_string(), allowed).into());
        }
    };
    let answer = app.store.run(Cancel { job: id, which, request_id }).await?;
    let state = answer.state.to_string();
    Ok(ok(&CancelResponse { withdrawn: answer.withdrawn, state }))
}

/// The one submission there is. Submissions are never taken away, so asked again it is the same,
/// or there are several by now and the caller has to say which.
async fn only_submission(app: &App, id: JobId) -> Result<Which, Rejection> {
    let job = job(app, id).await?;
    match job.submissions.as_slice() {
        [only] => Ok(Which::One(only.number)),
        several => {
            let numbers: Vec<_> = several.iter().map(|s| s.number.to_string()).collect();
            let allowed = format!(
                "must name one of the job's submissions, {}, or \"all\" must be true",
                numbers.join(", ")
            );
            Err(Invalid::new("submission", "", allowed).into())
        }
    }
}

/// `POST /v1/jobs/{id}/retry`.
pub(crate) async fn retry(
    State(app): State<App>,
    path: Segments,
    Json(asked): Json<RetryRequest>,
) -> Reply {
    let id = path.get::<JobId>("id")?;
    let request_id = request_id(asked.request_id)?;
    let submission = submission(asked.submission)?;
    let answer = app.store.run(Retry { job: id, submission, request_id }).await?;
    Ok(ok(&RetryResponse { state: answer.state.to_string() }))
}

fn request_id(given: Option<String>) -> Result<Option<RequestId>, Invalid> {
    given.map(|id| id.parse()).transpose()
}

fn submission(given: Option<u64>) -> Result<Option<Number>, Invalid> {
    let named = |invalid| Invalid { field: "submission".to_owned(), ..invalid };
    given.map(Number::new).transpose().map_err(named)
}
