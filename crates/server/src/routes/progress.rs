//! How far renders are.

use axum::{extract::State, http::StatusCode, response::IntoResponse};
use palisade_api::wire::{ProgressRequest, ProgressView, ProgressWire};
use palisade_core::{Invalid, JobId, SessionId, lease::Pair, outbox::Progress};

use super::{in_batch, pair};
use crate::{app::App, edge::Json, problems::Reply};

/// `POST /v1/progress`. A pair that was never granted is remembered for nobody: it is shown beside
/// an open attempt with that very pair alone.
pub(crate) async fn progress(State(app): State<App>, Json(asked): Json<ProgressRequest>) -> Reply {
    asked.session.parse::<SessionId>()?;
    in_batch("renders", asked.renders.len())?;
    let mut renders = Vec::with_capacity(asked.renders.len());
    for (index, render) in asked.renders.iter().enumerate() {
        let at = |invalid: Invalid| invalid.under(&format!("renders[{index}]"));
        renders.push(parsed(render).map_err(at)?);
    }
    for (job, pair, progress) in renders {
        app.progress.told(pair, progress);
        let ProgressView { share, speed, left_ms } = progress;
        app.webhooks.came(job, pair, Progress { share, speed, left_ms });
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn parsed(render: &ProgressWire) -> Result<(JobId, Pair, ProgressView), Invalid> {
    let job = render.job.parse::<JobId>()?;
    let progress = render.progress;
    if let Some(share) = progress.share
        && !(0.0..=1.0).contains(&share)
    {
        return Err(Invalid::new("share", &share.to_string(), "must be a number from 0 to 1"));
    }
    if let Some(speed) = progress.speed
        && !(speed.is_finite() && speed >= 0.0)
    {
        return Err(Invalid::new("speed", &speed.to_string(), "must be a number from 0"));
    }
    Ok((job, pair("", render.token, &render.lease)?, progress))
}
