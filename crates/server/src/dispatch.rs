//! What runs beside the requests: the journal's news to those who wait, the store's tick,
//! suspicions, and grants that nobody took.

use std::time::Duration;

use palisade_core::{JobId, lease::Pair};
use palisade_store::{
    Failure, StoreExt,
    command::{Command, Release, Suspect},
    events::Batch,
    query::{Query, View},
};
use tokio::sync::{broadcast, mpsc};

use crate::app::App;

/// Tells everybody who waits what was committed. Ends with the store.
pub(crate) async fn tell_news(app: App, mut changes: broadcast::Receiver<Batch>) {
    loop {
        match changes.recv().await {
            Ok(batch) => {
                app.sessions.tell(&batch);
                app.job_waits.tell(&batch);
                app.claims.tell(&batch);
            }
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "fell behind the journal; everybody looks for themselves");
                learn_holders(&app).await;
                app.job_waits.tell_all();
                app.claims.tell_all();
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

/// Learns who holds what, for the sessions' streams.
pub(crate) async fn learn_holders(app: &App) {
    match app.store.query(Query::Leases).await {
        Ok(View::Leases(held)) => app.sessions.learn(held),
        Ok(_) => unreachable!("each query is answered by its own kind"),
        Err(failure) => tracing::error!(%failure, "cannot learn who holds what"),
    }
}

/// Wakes claims when their time has come.
pub(crate) async fn keep_time(app: App) {
    app.claims.keep_time(&app).await;
}

/// Lets the store look at its clock, and suspects sessions that are gone.
pub(crate) async fn tick(app: App) {
    let mut failing = false;
    loop {
        tokio::time::sleep(app.config.tick_every).await;
        let suspects = app.sessions.due(app.store.now());
        let mut commands = vec![Command::Tick];
        // A server that stops has ended the sessions itself.
        if !app.stopping.is_cancelled() {
            commands.extend(suspects.into_iter().map(|(session, seen_at)| {
                tracing::info!(%session, "a session is gone; its leases become claimable");
                Command::Suspect(Suspect { session, seen_at })
            }));
        }
        let answers = app.store.execute(commands).await;
        let failed = answers.into_iter().find_map(Result::err);
        match &failed {
            // Once, not four times a second, for as long as it lasts.
            Some(failure) if !failing => tracing::error!(%failure, "the store's tick failed"),
            None if failing => tracing::info!("the store's tick works again"),
            _ => {}
        }
        failing = failed.is_some();
    }
}

/// What the task that hands grants back is told.
#[derive(Debug)]
pub(crate) enum Returned {
    /// A grant that nobody took.
    Grant(JobId, Pair),
    /// No more will come.
    End,
}

/// How long to wait before a grant that nobody took is handed back once more.
const AGAIN: Duration = Duration::from_millis(500);
/// How often it is tried. After that the lease's time does the rest.
const TRIES: usize = 10;

/// Hands back grants whose claimer had gone when they were committed.
pub(crate) async fn hand_back(app: App, mut returned: mpsc::UnboundedReceiver<Returned>) {
    while let Some(Returned::Grant(job, pair)) = returned.recv().await {
        for _ in 0..TRIES {
            match app.store.run(Release { job, pair }).await {
                Ok(_) => tracing::info!(%job, token = %pair.token, "handed back: nobody took it"),
                Err(Failure::Refused(refusal)) => {
                    tracing::debug!(%job, token = %pair.token, %refusal, "not handed back");
                }
                Err(Failure::Unavailable(_) | Failure::Unknown(_)) => {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            }
            break;
        }
    }
}
