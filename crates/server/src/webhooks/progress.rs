//! Progress, for those who ask: told as well as can be, the last of each render now and then, and
//! never a second time. What an endpoint is too slow for is left out.

use std::{collections::BTreeMap, sync::Arc};

use palisade_core::outbox::{EndpointId, EventId};
use palisade_store::{StoreExt, command::TellProgress};
use tokio::sync::Semaphore;

use crate::app::App;

use super::send::{Message, Sender};

/// Most messages of progress at once to one endpoint.
const AT_ONCE: usize = 4;

/// Tells progress until it is dropped.
pub(crate) async fn tell_progress(app: App) {
    let sender = Sender::new(&app.config.webhook_addresses, app.config.webhook_within);
    let mut places: BTreeMap<EndpointId, Arc<Semaphore>> = BTreeMap::new();
    loop {
        tokio::time::sleep(app.config.progress_every).await;
        let renders = app.webhooks.take_came();
        if renders.is_empty() {
            continue;
        }
        let notices = match app.store.run(TellProgress { renders }).await {
            Ok(answer) => answer.notices,
            Err(failure) => {
                tracing::debug!(%failure, "progress is not told");
                continue;
            }
        };
        for (endpoint, number, body) in notices {
            let places =
                places.entry(endpoint.id).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE)));
            let Ok(place) = Arc::clone(places).try_acquire_owned() else { continue };
            let id = EventId { endpoint: endpoint.id, number }.to_string();
            let secrets = endpoint.secrets(app.store.now());
            let message = Message { url: endpoint.url, id, body, secrets };
            let sender = sender.clone();
            tokio::spawn(async move {
                let tried = sender.send(message).await;
                tracing::trace!(?tried, "told progress");
                drop(place);
            });
        }
    }
}
