//! What one of several servers does for all: its turn is a lease of our own, renewed by doing it.
//!
//! The lease only saves work. Whatever is done under it may be done twice, or by two at once,
//! without harm: a server that slept through the end of its lease does one step too many, and the
//! step looks at the records anew.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use palisade_core::{
    HolderName, LeaseId, LockName, RequestId,
    clock::Entropy,
    lease::Pair,
    limits,
    lock::{Acquire, Acquired},
};
use palisade_store::{
    Failure, Store, StoreExt,
    command::{AcquireLock, ReleaseLock, RenewLock},
};

use crate::app::App;

/// What the names of the duties' locks begin with. Nobody outside is granted one of these.
pub(crate) const PREFIX: &str = "palisade/duties/";

/// How many steps a server may miss before another takes its turn.
const STEPS_MISSED: u32 = 3;

/// One duty, as one server sees it.
#[derive(Debug)]
pub(crate) struct Duty {
    store: Arc<dyn Store>,
    entropy: Arc<dyn Entropy>,
    name: LockName,
    holder: HolderName,
    ttl_ms: u64,
    held: Option<Pair>,
}

impl Duty {
    /// A duty with a step `every` so often.
    pub(crate) fn new(app: &App, what: &str, every: Duration) -> Self {
        Self::of(Arc::clone(&app.store), Arc::clone(&app.entropy), what, every)
    }

    fn of(store: Arc<dyn Store>, entropy: Arc<dyn Entropy>, what: &str, every: Duration) -> Self {
        let name = format!("{PREFIX}{what}").parse().expect("a lock's name");
        let holder = format!("server@{:032x}", entropy.next_u128());
        let ttl_ms = u64::try_from((every * STEPS_MISSED).as_millis()).unwrap_or(u64::MAX);
        let ttl_ms = ttl_ms.clamp(limits::TTL_MS_MIN, limits::TTL_MS_MAX);
        let holder = holder.parse().expect("a holder's name");
        Self { store, entropy, name, holder, ttl_ms, held: None }
    }

    /// Whether the next step is this server's. Asked before each step.
    pub(crate) async fn is_ours(&mut self) -> bool {
        if !self.store.is_shared() {
            return true;
        }
        if let Some(pair) = self.held {
            match self.store.run(RenewLock { name: self.name.clone(), pair }).await {
                Ok(_) => return true,
                Err(Failure::Refused(_)) => self.held = None,
                // The next step asks again.
                Err(Failure::Unavailable(_) | Failure::Unknown(_)) => return false,
            }
        }
        self.held = self.acquire().await;
        self.held.is_some()
    }

    async fn acquire(&self) -> Option<Pair> {
        let request_id = format!("{:032x}", self.entropy.next_u128());
        let wish = Acquire {
            holder: self.holder.clone(),
            ttl_ms: self.ttl_ms,
            wait_ms: 0,
            request_id: request_id.parse::<RequestId>().expect("digits are an id"),
            lease_id: LeaseId(self.entropy.next_u128()),
            alive_ms: 0,
        };
        let wish = AcquireLock { name: self.name.clone(), wish };
        match self.store.run(wish).await {
            Ok(Acquired::Granted(holding)) => {
                tracing::info!(duty = %self.name, token = %holding.token, "it is this server's turn");
                Some(Pair { token: holding.token, lease_id: holding.lease_id })
            }
            // Another's. A grant whose answer was lost is nobody's until its time is over.
            Ok(Acquired::Held { .. } | Acquired::Waiting { .. }) | Err(_) => None,
        }
    }

    /// Lets another server take over at once.
    pub(crate) async fn hand_over(&mut self) {
        if let Some(pair) = self.held.take() {
            // Not done, its time is over by itself.
            let _ = self.store.run(ReleaseLock { name: self.name.clone(), pair }).await;
        }
    }
}
