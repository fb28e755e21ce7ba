//! Looking at jobs: one, many, until it is over, and what happened.

use std::time::Duration;

use axum::extract::State;
use palisade_api::wire::{EventView, HistoryView, JobList};
use palisade_core::{JobId, RecipeName, job::JobState, limits};
use palisade_store::query::{JobFilter, Query, View};

use super::{job, ok};
use crate::{
    app::App,
    edge::{Params, Segments},
    problems::{self, Reply},
};

/// Most jobs on one page.
const PAGE_MAX: u64 = 1_000;
/// Jobs on a page when no number is asked for.
const PAGE_DEFAULT: u64 = 100;

/// `GET /v1/jobs`.
pub(crate) async fn list(State(app): State<App>, mut params: Params) -> Reply {
    let state = params.take::<JobState>("state")?;
    let recipe = params.take::<RecipeName>("recipe")?;
    let before = params.take::<JobId>("cursor")?;
    let limit = params.take_number("limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    params.finish("state, recipe, cursor, limit")?;
    let limit = usize::try_from(limit).expect("a thousand fits");
    // One more than is shown tells whether there is another page.
    let filter = JobFilter { state, recipe, before, limit: limit + 1 };
    let View::Jobs(mut jobs) = app.store.query(Query::Jobs(filter)).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next_cursor = jobs.last().filter(|_| more).map(|job| job.id.to_string());
    let now = app.store.now();
    let jobs = jobs.iter().map(|job| app.progress.view(job, now)).collect();
    Ok(ok(&JobList { jobs, next_cursor }))
}

/// `GET /v1/jobs/{id}`.
pub(crate) async fn show(State(app): State<App>, path: Segments, params: Params) -> Reply {
    let id = path.get::<JobId>("id")?;
    params.finish("")?;
    let job = job(&app, id).await?;
    Ok(ok(&app.progress.view(&job, app.store.now())))
}

/// `GET /v1/jobs/{id}/wait`: answers when the job is over and what is to be published of it is, or
/// as it stands when the time is over.
pub(crate) async fn wait(State(app): State<App>, path: Segments, mut params: Params) -> Reply {
    let id = path.get::<JobId>("id")?;
    let timeout_ms = params.take_number("timeout_ms", 0..=limits::WAIT_MS_MAX)?;
    params.finish("timeout_ms")?;
    let timeout_ms = timeout_ms.unwrap_or(limits::WAIT_MS_MAX);
    let over = tokio::time::sleep(Duration::from_millis(timeout_ms));
    tokio::pin!(over);
    let wait = app.job_waits.begin(id);
    loop {
        let news = wait.notify().notified();
        tokio::pin!(news);
        // Listens before it looks: what is committed in between is not missed.
        news.as_mut().enable();
        let job = job(&app, id).await?;
        let view = |job| ok(&app.progress.view(&job, app.store.now()));
        if !job.state.is_live() && job.publications_due().next().is_none() {
            return Ok(view(job));
        }
        tokio::select! {
            biased;
            () = app.stopping.cancelled() => return Err(problems::stopping()),
            () = news => {}
            () = &mut over => return Ok(view(job)),
        }
    }
}

/// `GET /v1/jobs/{id}/history`.
pub(crate) async fn history(State(app): State<App>, path: Segments, params: Params) -> Reply {
    let id = path.get::<JobId>("id")?;
    params.finish("")?;
    job(&app, id).await?;
    let View::History(entries) = app.store.query(Query::History(id)).await? else {
        unreachable!("each query is answered by its own kind");
    };
    let events = entries.into_iter().map(|(position, event)| EventView { position, event });
    Ok(ok(&HistoryView { events: events.collect() }))
}
