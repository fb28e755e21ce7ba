//! The thread that keeps a lock: ticks the keeper, renews, tells, and releases in the end.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use palisade_core::{
    LockName, Timestamp,
    keeper::{AbortReason, Action, Keeper, KeeperConfig},
    lease::Pair,
};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    Client, ClientError,
    wire::{PairWire, RenewResponse},
};

use super::{
    Edge, LockGuard, LockState, LockWish, Loss, ReleaseReply, Signs,
    acquire::{Granted, chance},
};

/// The thread's name, as `ps` and debuggers show it.
const THREAD_NAME: &str = "pal-lock";
/// The longest that is slept without a look at the clock, in ms: the system's timers stand still
/// while the machine is suspended, the clock does not.
const LOOK_AGAIN_MS: u64 = 1_000;
/// Renewals on their way at a time: in doubt they are sent more often than a slow network answers.
const IN_FLIGHT_MAX: usize = 8;
/// How long a release is tried, in ms. After that the lease's time does the rest.
const RELEASE_MS: u64 = 5_000;
/// The wait before a release is tried again, in ms.
const RELEASE_AGAIN_MS: u64 = 200;

/// Starts the thread.
pub(super) fn start(
    client: &Client,
    wish: LockWish,
    edge: Edge,
    granted: &Granted,
) -> Result<LockGuard, ClientError> {
    let config = KeeperConfig::for_ttl(granted.ttl_ms, wish.doubt_grace_ms);
    let now = edge.clock.now();
    let (sent_at, waited_ms) = (granted.sent_at, granted.waited_ms);
    let keeper = Keeper::granted(config, sent_at, waited_ms, now, chance(&edge));
    let signs = Signs::new(keeper.trusted_until());
    let keeper = Arc::new(Mutex::new(keeper));
    let (orders, receiver) = mpsc::unbounded_channel();
    let clock = Arc::clone(&edge.clock);
    let keeping = Keeping {
        client: client.with_own_connections()?,
        name: wish.name.clone(),
        pair: granted.pair,
        edge,
        keeper: Arc::clone(&keeper),
        last_word: LastWord { signs: signs.clone(), released: false },
        renew_within: Duration::from_millis((granted.ttl_ms / 3).clamp(1_000, 10_000)),
        in_flight: JoinSet::new(),
    };
    let local = |source| ClientError::Local { doing: "start the thread that keeps a lock", source };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(local)?;
    std::thread::Builder::new()
        .name(THREAD_NAME.to_owned())
        .spawn(move || {
            runtime.block_on(keeping.run(receiver));
            // A name lookup that hangs must not keep the process.
            runtime.shutdown_background();
        })
        .map_err(local)?;
    Ok(LockGuard { name: wish.name, pair: granted.pair, waited_ms, clock, keeper, signs, orders })
}

/// What came of one renewal.
struct Renewal {
    sent_at: Timestamp,
    answer: Result<RenewResponse, ClientError>,
}

/// The owner is told, even should this thread end by a fault of its own.
struct LastWord {
    signs: Signs,
    released: bool,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        if !self.released && !self.signs.lost.is_cancelled() {
            let detail = Some("the thread that kept it has ended".to_owned());
            let loss = Loss { reason: AbortReason::DoubtGraceOver, detail };
            self.signs.tell(LockState::Lost(loss));
        }
    }
}

struct Keeping {
    client: Client,
    name: LockName,
    pair: Pair,
    edge: Edge,
    keeper: Arc<Mutex<Keeper>>,
    last_word: LastWord,
    renew_within: Duration,
    in_flight: JoinSet<Renewal>,
}

impl Keeping {
    /// Tick, listen, send, in that order: after a pause the keeper hears of the time that passed
    /// before it hears anything that arrived meanwhile.
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<ReleaseReply>) {
        let mut arrived = None;
        // None: the guard was dropped, and nobody waits to hear what came of the release.
        let reply = loop {
            let now = self.edge.clock.now();
            let chance = chance(&self.edge);
            let mut actions = self.keeper(|keeper| keeper.tick(now, chance));
            let mut detail = None;
            if let Some(renewal) = arrived.take() {
                let (more, told) = self.listen(&renewal, now);
                actions.extend(more);
                detail = told;
            }
            self.carry_out(&actions, now, detail.as_deref());
            if self.last_word.signs.lost.is_cancelled() {
                break orders.recv().await;
            }
            let wake_at = self.keeper(|keeper| keeper.wake_at());
            let sleep_ms = wake_at.since_ms(now).clamp(1, LOOK_AGAIN_MS);
            tokio::select! {
                biased;
                reply = orders.recv() => break reply,
                Some(Ok(renewal)) = self.in_flight.join_next() => arrived = Some(renewal),
                () = tokio::time::sleep(Duration::from_millis(sleep_ms)) => {}
            }
        };
        self.in_flight.abort_all();
        self.last_word.released = true;
        let released = self.release().await;
        if let Some(reply) = reply {
            // Whoever asked may have stopped listening; it is released all the same.
            let _ = reply.send(released);
        }
    }

    fn keeper<A>(&self, with: impl FnOnce(&mut Keeper) -> A) -> A {
        with(&mut self.keeper.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a renewal's answer means to the keeper, and what the server said.
    fn listen(&self, renewal: &Renewal, now: Timestamp) -> (Vec<Action>, Option<String>) {
        let Err(error) = &renewal.answer else {
            let (actions, until) = self
                .keeper(|keeper| (keeper.confirmed(renewal.sent_at, now), keeper.trusted_until()));
            self.last_word.signs.trusted.send_replace(until);
            return (actions, None);
        };
        let reason = match error.code() {
            Some("lease_lost") => AbortReason::Lost,
            Some("unknown_token") => AbortReason::UnknownToken,
            // Silence, a proxy's page, a server that is busy: unconfirmed, no more.
            _ => return (Vec::new(), None),
        };
        (self.keeper(|keeper| keeper.refused(reason)), Some(error.to_string()))
    }

    fn carry_out(&mut self, actions: &[Action], now: Timestamp, detail: Option<&str>) {
        for action in actions {
            match *action {
                Action::Freeze => self.last_word.signs.tell(LockState::Doubt),
                Action::Thaw => self.last_word.signs.tell(LockState::Held),
                Action::Renew => self.renew(now),
                Action::Abort(reason) => {
                    let detail = detail.map(str::to_owned);
                    self.last_word.signs.tell(LockState::Lost(Loss { reason, detail }));
                }
                // Locks' pauses are nobody's statistics; the doubt that follows is told.
                Action::ReportPause(_) => {}
            }
        }
    }

    fn renew(&mut self, sent_at: Timestamp) {
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            return;
        }
        let (client, name, pair) = (self.client.clone(), self.name.clone(), wire(self.pair));
        let within = self.renew_within;
        self.in_flight.spawn(async move {
            Renewal { sent_at, answer: client.renew_lock(name.as_str(), &pair, within).await }
        });
    }

    /// Releases, again and again for a moment while the server is away. Also a lock that is called
    /// lost because nobody confirmed it: the server may count it as held.
    async fn release(&self) -> Result<(), ClientError> {
        let over = self.edge.clock.now().plus_ms(RELEASE_MS);
        loop {
            let released = self.client.release_lock(self.name.as_str(), &wire(self.pair)).await;
            match released {
                Ok(_) => return Ok(()),
                Err(error) if error.is_unconfirmed() && self.edge.clock.now() < over => {
                    tokio::time::sleep(Duration::from_millis(RELEASE_AGAIN_MS)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn wire(pair: Pair) -> PairWire {
    PairWire { token: pair.token.get(), lease: pair.lease_id.to_string() }
}
