//! The deliverer: leases what is due, tries it, settles.

use std::time::Duration;

use palisade_core::{LeaseId, Timestamp};
use palisade_store::{
    Failure, StoreExt,
    command::{LeaseDeliveries, SettleDelivery, ToDeliver},
};
use tokio::task::JoinSet;

use crate::app::App;

use super::send::{Message, Sender};

/// Most tries at once.
const TRIES_AT_ONCE: usize = 64;
/// Most tries at once at one endpoint, so that one that does not answer leaves room for others.
const ENDPOINT_TRIES_AT_ONCE: usize = 4;
/// How much longer a lease is than a try can take, in ms.
const LEASE_MARGIN_MS: u64 = 5_000;
/// The longest sleep, in ms: the store's clock may go otherwise than the timer's.
const SLEEP_MS_MAX: u64 = 60_000;
/// How long to wait when the store does not answer.
const AGAIN: Duration = Duration::from_millis(500);
/// How often a settlement is told. After that the lease's time makes the delivery again.
const SETTLES: usize = 5;

/// Delivers until the server stops; then lets end what runs.
pub(crate) async fn deliver(app: App) {
    let within = app.config.webhook_within;
    let sender = Sender::new(&app.config.webhook_addresses, within);
    let ttl_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX) + LEASE_MARGIN_MS;
    let mut running = JoinSet::new();
    while !app.stopping.is_cancelled() {
        let room = TRIES_AT_ONCE - running.len();
        let lease_ids = (0..room).map(|_| LeaseId(app.entropy.next_u128())).collect();
        let lease = LeaseDeliveries { lease_ids, endpoint_max: ENDPOINT_TRIES_AT_ONCE, ttl_ms };
        let next_at = match app.store.run(lease).await {
            Ok(answer) => {
                answer.endpoints.iter().for_each(|endpoint| app.webhooks.learn(endpoint));
                for one in answer.leased {
                    running.spawn(deliver_one(app.clone(), sender.clone(), one));
                }
                answer.next_at
            }
            Err(failure) => {
                tracing::warn!(%failure, "cannot look what has to be told");
                Some(app.store.now().plus_ms(u64::try_from(AGAIN.as_millis()).unwrap_or(500)))
            }
        };
        tokio::select! {
            () = app.stopping.cancelled() => {}
            () = app.webhooks.wake.notified() => {}
            // What was settled may make way for another.
            Some(_) = running.join_next() => {}
            () = sleep_until(&app, next_at) => {}
        }
    }
    while running.join_next().await.is_some() {}
}

async fn sleep_until(app: &App, at: Option<Timestamp>) {
    match at {
        None => std::future::pending().await,
        Some(at) => {
            let wait_ms = at.since_ms(app.store.now()).clamp(1, SLEEP_MS_MAX);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
    }
}

async fn deliver_one(app: App, sender: Sender, one: ToDeliver) {
    let ToDeliver { delivery, lease_id, endpoint } = one;
    let id = delivery.id();
    let message = Message {
        url: endpoint.url.clone(),
        id: id.to_string(),
        body: delivery.notice.body,
        secrets: endpoint.secrets(app.store.now()),
    };
    let tried = sender.send(message).await;
    tracing::debug!(%id, webhook = %endpoint.id, ?tried, "tried");
    let chance = u64::try_from(app.entropy.next_u128() >> 64).expect("the upper half fits");
    let settle = SettleDelivery { id, lease_id, tried, chance };
    for _ in 0..SETTLES {
        match app.store.run(settle.clone()).await {
            Ok(_) => return,
            Err(Failure::Refused(refusal)) => {
                tracing::error!(%id, %refusal, "a settlement was refused");
                return;
            }
            Err(Failure::Unavailable(_) | Failure::Unknown(_)) => tokio::time::sleep(AGAIN).await,
        }
    }
    tracing::warn!(%id, "could not be settled; it will be delivered again");
}
