//! What runs beside the requests: the journal's news to those who wait, suspicions, and grants
//! that nobody took.

use std::time::Duration;

use palisade_store::{
    Failure, StoreExt,
    command::{Forget, HandBack, LeaveLock, Suspect, Verb},
    events::Batch,
    query::{Query, View},
};
use tokio::sync::{broadcast, mpsc};

use crate::{app::App, duty::Duty};

/// Tells everybody who waits what was committed. Ends with the store.
pub(crate) async fn tell_news(app: App, mut changes: broadcast::Receiver<Batch>) {
    loop {
        match changes.recv().await {
            Ok(batch) if batch.is_empty() => {
                tracing::warn!("the journal may be another one; everybody looks for themselves");
                tell_all(&app).await;
            }
            Ok(batch) => {
                app.sessions.tell(&batch);
                app.progress.forget(&batch);
                app.job_waits.tell(&batch);
                app.lock_waits.tell(&batch);
                app.publisher.tell(&batch);
                app.claims.tell(&batch);
                app.webhooks.tell(&batch);
            }
            Err(broadcast::error::RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "fell behind the journal; everybody looks for themselves");
                tell_all(&app).await;
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

/// Something may have been missed: all look at the records.
async fn tell_all(app: &App) {
    learn_holders(app).await;
    app.job_waits.tell_all();
    app.lock_waits.tell_all();
    app.publisher.tell_all();
    app.claims.tell_all();
    app.webhooks.look();
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

/// Suspects sessions that are gone. The store's own time is the store's matter.
pub(crate) async fn suspect(app: App) {
    loop {
        tokio::time::sleep(app.config.look_every).await;
        let suspects = app.sessions.due(app.store.now());
        // A server that stops has ended the sessions itself.
        if suspects.is_empty() || app.stopping.is_cancelled() {
            continue;
        }
        let suspects: Vec<_> = suspects
            .into_iter()
            .map(|(session, seen_at)| {
                tracing::info!(%session, "a session is gone; its leases become claimable");
                Suspect { session, seen_at }
            })
            .collect();
        for failure in app.store.run_all(suspects).await.into_iter().filter_map(Result::err) {
            // Not asked again: the leases' time does the rest.
            tracing::error!(%failure, "a session that is gone could not be suspected");
        }
    }
}

/// How long a step of forgetting leaves the store to others before the next.
const BREATH: Duration = Duration::from_millis(200);

/// Forgets what is old, one small step at a time.
pub(crate) async fn forget(app: App) {
    let Some(retention) = app.config.keep_history else { return };
    let mut duty = Duty::new(&app, "retention", app.config.forget_every);
    let mut after = 0;
    loop {
        if !duty.is_ours().await {
            tokio::time::sleep(app.config.forget_every).await;
            continue;
        }
        let now = app.store.now();
        let step = Forget {
            journal_before: retention.journal_before(now),
            answers_before: retention.answers_before(now),
            after,
        };
        let next = match app.store.run(step).await {
            Ok(went) => {
                if went.entries > 0 || went.answers > 0 {
                    tracing::debug!(entries = went.entries, answers = went.answers, "forgotten");
                }
                went.next
            }
            Err(failure) => {
                tracing::warn!(%failure, "what is old could not be forgotten");
                None
            }
        };
        after = next.unwrap_or(0);
        let pause = if next.is_some() { BREATH } else { app.config.forget_every };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.stopping.cancelled() => return duty.hand_over().await,
        }
    }
}

/// What the task that hands grants back is told.
#[derive(Debug)]
pub(crate) enum Returned {
    /// A grant that nobody took.
    Grant(HandBack),
    /// A place in a lock's queue, or the grant it led to, whose asker has gone.
    Lock(LeaveLock),
    /// No more will come.
    End,
}

/// How long to wait before a grant that nobody took is handed back once more.
const AGAIN: Duration = Duration::from_millis(500);
/// How often it is tried. After that the lease's time does the rest.
const TRIES: usize = 10;

/// Hands back grants whose claimer had gone when they were committed.
pub(crate) async fn hand_back(app: App, mut returned: mpsc::UnboundedReceiver<Returned>) {
    while let Some(returned) = returned.recv().await {
        match returned {
            Returned::Grant(unheard) => hand_back_one(&app, unheard).await,
            Returned::Lock(gone) => leave(&app, gone).await,
            Returned::End => return,
        }
    }
}

async fn hand_back_one(app: &App, unheard: HandBack) {
    let (job, token) = (unheard.job, unheard.pair.token);
    match again_and_again(app, unheard).await {
        Ok(true) => tracing::info!(%job, %token, "handed back: nobody took it"),
        Ok(false) => tracing::debug!(%job, %token, "not handed back: it was heard of"),
        Err(failure) => tracing::debug!(%job, %token, %failure, "not handed back"),
    }
}

/// Takes back what a wish for a lock came to, as nobody knows of it.
async fn leave(app: &App, gone: LeaveLock) {
    let name = gone.name.clone();
    if let Err(failure) = again_and_again(app, gone).await {
        tracing::debug!(%name, %failure, "not taken back");
    }
}

/// Runs a command until the store answers it, or the tries are used up.
async fn again_and_again<V: Verb + Clone + 'static>(
    app: &App,
    verb: V,
) -> Result<V::Answer, Failure> {
    for _ in 1..TRIES {
        match app.store.run(verb.clone()).await {
            Err(Failure::Unavailable(_) | Failure::Unknown(_)) => tokio::time::sleep(AGAIN).await,
            answered => return answered,
        }
    }
    app.store.run(verb).await
}
