//! Claims that wait: first come, first served, woken by what the store commits.

mod desk;
mod grant;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use palisade_core::{
    Digest, RequestId, SessionId, Timestamp,
    digest::Hasher,
    history::{Event, Joined, What},
    job::JobState,
    time::granted_span_ms,
};
use palisade_store::{Failure, StoreExt, command::Claim};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use self::desk::{Desk, GroupKey, LOOK_AGAIN_MS, WaiterId};
pub(crate) use self::grant::Undelivered;
use crate::{
    app::App,
    problems::{self, Rejection},
};

/// The longest sleep of the timer, in ms. It sleeps by another clock than the store's, which
/// counts suspended time.
const SLEEP_MS_MAX: u64 = 250;

/// The claims of this server.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    desk: Mutex<Desk>,
    /// Tells the timer that the earliest instant may have changed.
    timer: Notify,
    /// The connection that each claim is answered on, of those asked for twice the later one.
    connections: Mutex<BTreeMap<(SessionId, RequestId), CancellationToken>>,
}

impl Claims {
    /// What was committed: wakes as many waiters as jobs became claimable.
    pub(crate) fn tell(&self, events: &[Event]) {
        let mut desk = self.desk();
        if desk.len() == 0 {
            return;
        }
        let claimable = |event: &&Event| match &event.what {
            What::Submitted { how, .. } => *how == Joined::New,
            What::Moved { state, .. } => *state == JobState::Queued,
            What::Suspected { .. } => true,
            _ => false,
        };
        desk.wake(events.iter().filter(claimable).count());
        // What was granted just now becomes claimable again unless it is renewed.
        let ends = events.iter().filter_map(|event| match &event.what {
            What::Granted { ttl_ms, .. } => Some(event.at.plus_ms(granted_span_ms(*ttl_ms))),
            _ => None,
        });
        if let Some(first) = ends.min() {
            desk.expect_at(first);
            drop(desk);
            self.timer.notify_one();
        }
    }

    /// Wakes everybody: something may have been missed.
    pub(crate) fn tell_all(&self) {
        let mut desk = self.desk();
        let waiting = desk.len();
        desk.wake(waiting);
    }

    /// Wakes waiters when their time has come, until it is dropped.
    pub(crate) async fn keep_time(&self, app: &App) {
        loop {
            let now = app.store.now();
            let next_at = {
                let mut desk = self.desk();
                desk.time(now);
                desk.next_at()
            };
            let Some(next_at) = next_at else {
                self.timer.notified().await;
                continue;
            };
            let wait_ms = next_at.since_ms(now).clamp(1, SLEEP_MS_MAX);
            let wait = Duration::from_millis(wait_ms);
            // Elapsed or told: either way the next round looks.
            let _ = tokio::time::timeout(wait, self.timer.notified()).await;
        }
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.desk().len()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<(SessionId, RequestId), CancellationToken>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Claims; when there is nothing, waits for at most `wait`. What is granted and not taken by
/// whoever called this goes back to the store at once.
pub(crate) async fn claim(
    app: &App,
    claim: Claim,
    wait: Duration,
) -> Result<Undelivered, Rejection> {
    let connection = Connection::open(app, &claim);
    let mut seat = Seat::take(app, &claim);
    let over = tokio::time::sleep(wait);
    tokio::pin!(over);
    loop {
        let came = attempt(app, &claim, &connection.taken_over).await?;
        if wait.is_zero() || !came.claimed.grants.is_empty() || !came.claimed.lost.is_empty() {
            seat.granted = !came.claimed.grants.is_empty();
            return Ok(came);
        }
        if seat.got_nothing(came.claimed.next_at) {
            continue;
        }
        loop {
            tokio::select! {
                biased;
                () = app.stopping.cancelled() => return Err(problems::stopping()),
                () = connection.taken_over.cancelled() => return Err(problems::taken_over()),
                () = seat.notify.notified() => {
                    if seat.begin() {
                        break;
                    }
                }
                () = &mut over => return Ok(came),
            }
        }
    }
}

/// Asks the store once. The question is asked to its end even if the asker goes meanwhile, so
/// that what it was granted can be given back.
async fn attempt(
    app: &App,
    claim: &Claim,
    taken_over: &CancellationToken,
) -> Result<Undelivered, Failure> {
    let (answer, answered) = oneshot::channel();
    let (app, claim, taken_over) = (app.clone(), claim.clone(), taken_over.clone());
    tokio::spawn(async move {
        let claimed = app.store.run(claim).await;
        let orphans = app.orphans.clone();
        let came = claimed.map(|claimed| Undelivered::new(claimed, orphans, taken_over));
        // Nobody there any more: what was granted goes back as it is dropped.
        let _ = answer.send(came);
    });
    let lost = |_| Failure::Unknown("the task that asked the store ended early".to_owned());
    answered.await.map_err(lost)?
}

/// The connection that waits for a claim's answer. Of two with the same ids the later one counts.
struct Connection<'a> {
    claims: &'a Claims,
    key: (SessionId, RequestId),
    taken_over: CancellationToken,
}

impl<'a> Connection<'a> {
    fn open(app: &'a App, claim: &Claim) -> Self {
        let claims = &app.claims;
        let key = (claim.session.clone(), claim.request_id.clone());
        let taken_over = CancellationToken::new();
        // Under one lock: the one before must not take the new entry for its own as it goes.
        let mut connections = claims.connections();
        if let Some(before) = connections.insert(key.clone(), taken_over.clone()) {
            before.cancel();
        }
        drop(connections);
        Self { claims, key, taken_over }
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let mut connections = self.claims.connections();
        // Whoever took over has put its own in place.
        if !self.taken_over.is_cancelled() {
            connections.remove(&self.key);
        }
    }
}

/// A waiter's place at the desk. Dropped, it is free, and what it was called for is passed on.
struct Seat<'a> {
    app: &'a App,
    id: WaiterId,
    notify: Arc<Notify>,
    granted: bool,
}

impl<'a> Seat<'a> {
    fn take(app: &'a App, claim: &Claim) -> Self {
        let (id, notify) = app.claims.desk().enter(group_of(claim));
        Self { app, id, notify, granted: false }
    }

    /// Answers whether to try again at once.
    fn got_nothing(&self, next_at: Option<Timestamp>) -> bool {
        let look_again = self.app.store.now().plus_ms(LOOK_AGAIN_MS);
        let next_at = next_at.map_or(look_again, |at| at.min(look_again));
        let again = self.app.claims.desk().got_nothing(self.id, next_at);
        self.app.claims.timer.notify_one();
        again
    }

    fn begin(&self) -> bool {
        self.app.claims.desk().begin(self.id)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.app.claims.desk().leave(self.id, self.granted);
    }
}

/// Claims that name the same capabilities are of one group, whatever their order.
fn group_of(claim: &Claim) -> GroupKey {
    let mut capabilities: Vec<_> = claim.capabilities.iter().collect();
    capabilities.sort();
    capabilities.dedup();
    let mut hasher = Hasher::new();
    for capability in capabilities {
        hasher.update(capability.definition.as_bytes());
        let name = Digest::of(capability.recipe.as_str().as_bytes());
        hasher.update(name.as_bytes());
    }
    hasher.finish()
}
