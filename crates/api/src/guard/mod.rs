//! A lock that is held, and kept.
//!
//! [`LockGuard::acquire`] waits for the lock and then keeps it, on a thread with a runtime and
//! connections of its own, so that nothing its owner does starves the renewals. The owner is told
//! by a channel and by cancellation tokens when the lock is in doubt or lost: never by silence.
//!
//! The guard makes the common case cheap. It closes nothing: a process can be paused between the
//! guard's word and the effect's arrival, so every effect carries the pair all the same.
//!
//! Must not know: clocks and randomness of the machine; they are handed in.

mod acquire;
mod keeping;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use palisade_core::{
    HolderName, LockName, Timestamp,
    clock::{Clock, Entropy},
    keeper::{AbortReason, Keeper},
    lease::Pair,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::{Client, ClientError};

/// A wish for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWish {
    /// The lock.
    pub name: LockName,
    /// Who asks, as it calls itself.
    pub holder: HolderName,
    /// The lease's length, in ms.
    pub ttl_ms: u64,
    /// How long to wait while somebody else holds it, or the server is away, in ms.
    pub wait_ms: u64,
    /// How long doubt is put up with before the lock is called lost, in ms.
    pub doubt_grace_ms: u64,
}

/// What the guard needs of the machine.
#[derive(Debug, Clone)]
pub struct Edge {
    /// A clock that counts suspended time (`CLOCK_BOOTTIME`): the keeper's.
    pub clock: Arc<dyn Clock>,
    /// Randomness that nobody can guess.
    pub entropy: Arc<dyn Entropy>,
}

/// How a lock stands, as far as its holder can know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// It is held.
    Held,
    /// Nobody confirmed it in time, or this process was paused: do nothing until it is held again.
    Doubt,
    /// It is gone, for good.
    Lost(Loss),
}

/// Why a lock is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// What ended it.
    pub reason: AbortReason,
    /// What the server said, if it said anything.
    pub detail: Option<String>,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.reason {
            AbortReason::Lost | AbortReason::Cancelled => "the server gave it away",
            AbortReason::UnknownToken => "the server does not know it",
            AbortReason::DoubtGraceOver => "nobody confirmed it for too long",
        };
        formatter.write_str(text)?;
        match &self.detail {
            Some(detail) => write!(formatter, ": {detail}"),
            None => Ok(()),
        }
    }
}

/// A lock that is kept until it is released or lost. Dropped, it is released in the background;
/// whoever needs to know what came of that calls [`LockGuard::release`].
#[derive(Debug)]
pub struct LockGuard {
    name: LockName,
    pair: Pair,
    waited_ms: u64,
    clock: Arc<dyn Clock>,
    keeper: Arc<Mutex<Keeper>>,
    signs: Signs,
    /// Closed, the thread releases and ends.
    orders: mpsc::UnboundedSender<ReleaseReply>,
}

/// Where somebody waits to hear what came of the release.
type ReleaseReply = oneshot::Sender<Result<(), ClientError>>;

/// How many changes are kept for an owner that is slow to look.
const CHANGES_KEPT: usize = 64;

/// By what the owner is told.
#[derive(Debug, Clone)]
struct Signs {
    state: watch::Sender<LockState>,
    trusted: watch::Sender<Timestamp>,
    changes: broadcast::Sender<LockState>,
    doubted: CancellationToken,
    lost: CancellationToken,
}

impl Signs {
    fn new(trusted_until: Timestamp) -> Self {
        Self {
            state: watch::Sender::new(LockState::Held),
            trusted: watch::Sender::new(trusted_until),
            changes: broadcast::Sender::new(CHANGES_KEPT),
            doubted: CancellationToken::new(),
            lost: CancellationToken::new(),
        }
    }

    /// The state, then the tokens, then the news: whoever hears of a change finds the others as
    /// it says.
    fn tell(&self, state: LockState) {
        self.state.send_replace(state.clone());
        if state != LockState::Held {
            self.doubted.cancel();
        }
        if matches!(state, LockState::Lost(_)) {
            self.lost.cancel();
        }
        // Nobody need follow each change.
        let _nobody = self.changes.send(state);
    }
}

impl LockGuard {
    /// Waits for the lock and keeps it. Refused with the code `held` when the wait is over, or at
    /// once if `wait_ms` is 0. Dropped while it waits, it leaves the queue.
    pub async fn acquire(client: &Client, wish: LockWish, edge: Edge) -> Result<Self, ClientError> {
        let granted = acquire::acquire(client, &wish, &edge).await?;
        keeping::start(client, wish, edge, &granted)
    }

    /// The lock.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// The fencing token and lease id: every effect shows them.
    pub const fn pair(&self) -> Pair {
        self.pair
    }

    /// How long the last request had waited at the server before the grant, in ms.
    pub const fn waited_ms(&self) -> u64 {
        self.waited_ms
    }

    /// How the lock stands now. Who follows it sees the latest, not every change.
    pub fn state(&self) -> watch::Receiver<LockState> {
        self.signs.state.subscribe()
    }

    /// Up to when the lock may be trusted, on the clock that was handed in: later with each renewal
    /// that is confirmed. For what runs in another process and must stop by itself should this one
    /// be paused. Told before the state is `Held` again.
    pub fn trusted_until(&self) -> watch::Receiver<Timestamp> {
        self.signs.trusted.subscribe()
    }

    /// Every change from now on, in order: a doubt that is over before the owner has looked is
    /// among them, which [`state`](Self::state) may pass over.
    pub fn changes(&self) -> broadcast::Receiver<LockState> {
        self.signs.changes.subscribe()
    }

    /// Cancelled as soon as the lock is in doubt or lost, for good: for owners that would rather
    /// stop than wait until it is held again.
    pub fn doubted(&self) -> CancellationToken {
        self.signs.doubted.clone()
    }

    /// Cancelled when the lock is lost.
    pub fn lost(&self) -> CancellationToken {
        self.signs.lost.clone()
    }

    /// Whether an effect may be attempted now. Every effect asks first, and carries the pair all
    /// the same.
    pub fn may_act(&self) -> bool {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        keeper.may_act(self.clock.now())
    }

    /// Ends the keeping and releases the lock. Refused with `lease_lost` when it had gone to
    /// another before; an unconfirmed error says that it ends with its ttl at the latest.
    pub async fn release(self) -> Result<(), ClientError> {
        let (reply, answer) = oneshot::channel();
        // A thread that has ended has lost the lock and said so: nothing is held any more.
        if self.orders.send(reply).is_err() {
            return Ok(());
        }
        answer.await.unwrap_or(Ok(()))
    }
}
