//! Carries out publications as soon as they are due: when the server starts, and after each commit
//! that may have made one due. What is missed here, the store's own tick carries out.

use std::time::Duration;

use palisade_core::{
    history::{Event, Joined, What},
    job::JobState,
};
use palisade_store::{StoreExt, command::Publish};
use tokio::sync::Notify;

use crate::app::App;

/// Most publications in one command: each may have 20,000 outputs, and others wait meanwhile.
const AT_ONCE: usize = 16;
/// How long to wait before a store that failed is asked once more.
const AGAIN: Duration = Duration::from_millis(500);

/// Wakes the publisher.
#[derive(Debug, Default)]
pub(crate) struct Publisher(Notify);

impl Publisher {
    /// What was committed.
    pub(crate) fn tell(&self, events: &[Event]) {
        let may_be_due = |event: &Event| {
            matches!(
                event.what,
                What::Moved { state: JobState::Complete, .. }
                    | What::Submitted { how: Joined::Cached, .. }
            )
        };
        if events.iter().any(may_be_due) {
            self.0.notify_one();
        }
    }

    /// Something may have been missed.
    pub(crate) fn tell_all(&self) {
        self.0.notify_one();
    }
}

/// Publishes whatever is due, until it is aborted.
pub(crate) async fn publish(app: App) {
    loop {
        match app.store.run(Publish { limit: AT_ONCE }).await {
            Ok(projected) => {
                for (job, submission) in &projected.carried_out {
                    tracing::debug!(%job, %submission, "a publication was carried out");
                }
                if !projected.more || projected.carried_out.is_empty() {
                    app.publisher.0.notified().await;
                }
            }
            Err(failure) => {
                tracing::error!(%failure, "what is due could not be published");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}
