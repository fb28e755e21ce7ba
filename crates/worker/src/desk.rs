//! The table of leases as the whole worker shares it: behind a lock that is held for a look or an
//! entry, never across a wait, so that nobody keeps the heartbeat's thread from it.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use palisade_api::wire::HeartbeatResponse;
use palisade_core::{
    JobId, Number, RequestId, SessionId, Timestamp, clock::Entropy, keeper::Keeper, lease::Pair,
};
use tokio::sync::Notify;

use crate::{
    backoff::chance,
    config::WorkerConfig,
    control_plane::CallError,
    events::{AttemptEvent, Event, Events, What},
    leases::{Act, Beat, Kept, Leases, Order, Told},
    switch::{End, Phase, Switch},
    timer::{Timer, sleep_ms},
};

/// How often an attempt that may not act asks again although it was told nothing, in ms.
const LOOK_AGAIN_MS: u64 = 100;

/// The table, its clock, and who is told.
#[derive(Debug)]
pub(crate) struct Desk {
    leases: Mutex<Leases>,
    /// Said through the session and not yet passed on: a keeper hears of time first.
    told: Mutex<Vec<Told>>,
    pub(crate) config: WorkerConfig,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) events: Events,
    /// Wakes the heartbeat's loop.
    pub(crate) nudge: Notify,
    /// A heartbeat is to be sent at once, over a new connection.
    urgent: AtomicBool,
    /// A heartbeat is to be sent soon.
    due: AtomicBool,
    /// Whether the server was told to be away, and not yet to be back.
    away: AtomicBool,
}

/// What was granted, as the claim's answer has it.
#[derive(Debug, Clone)]
pub(crate) struct Granted {
    pub(crate) job: JobId,
    pub(crate) pair: Pair,
    pub(crate) ttl_ms: u64,
    pub(crate) waited_ms: u64,
    pub(crate) switch: Arc<Switch>,
}

impl Desk {
    pub(crate) fn new(
        config: WorkerConfig,
        timer: Arc<dyn Timer>,
        entropy: Arc<dyn Entropy>,
        events: Events,
    ) -> Arc<Self> {
        let session = format!("{:032x}", entropy.next_u128());
        let session: SessionId = session.parse().expect("hexadecimal digits are allowed");
        let leases = Mutex::new(Leases::new(session));
        let told = Mutex::new(Vec::new());
        let nudge = Notify::new();
        let [urgent, due, away] = [(); 3].map(|()| AtomicBool::new(false));
        Arc::new(Self { leases, told, config, timer, entropy, events, nudge, urgent, due, away })
    }

    pub(crate) fn session(&self) -> SessionId {
        self.leases().session().clone()
    }

    /// A claim under a new request id, pending from now on.
    pub(crate) fn begin_claim(&self) -> RequestId {
        let id = format!("{:032x}", self.entropy.next_u128());
        let id: RequestId = id.parse().expect("hexadecimal digits are allowed");
        self.leases().begin_claim(id.clone());
        id
    }

    /// The last heartbeat's `seq`.
    pub(crate) fn seq(&self) -> u64 {
        self.leases().seq()
    }

    /// A claim that was sent at `sent_at` was answered.
    pub(crate) fn settle_claim(&self, id: &RequestId, sent_at: Timestamp, granted: &[Granted]) {
        let now = self.timer.now();
        let kept = granted.iter().map(|grant| {
            // A claim that took over the wait of an earlier one may be told how long that one
            // had waited; this one cannot have waited for longer than it took.
            let waited_ms = grant.waited_ms.min(now.since_ms(sent_at));
            let config = self.config.keeper(grant.ttl_ms);
            let chance = chance(&*self.entropy);
            Kept {
                job: grant.job,
                pair: grant.pair,
                keeper: Keeper::granted(config, sent_at, waited_ms, now, chance),
                switch: Arc::clone(&grant.switch),
            }
        });
        let kept = kept.collect();
        self.leases().settle_claim(id, kept);
        self.nudge.notify_one();
    }

    pub(crate) fn abandon_claim(&self, id: &RequestId) {
        self.leases().abandon_claim(id);
        self.nudge.notify_one();
    }

    /// Returns when an effect of the attempt may be attempted, or the attempt has ended.
    pub(crate) async fn permit(&self, token: Number, switch: &Switch) -> Result<(), End> {
        self.when(switch, || self.leases().may_act(token, self.timer.now())).await
    }

    /// Returns when the attempt's completion may be sent, and nothing else any more, or the
    /// attempt has ended.
    pub(crate) async fn completing(&self, token: Number, switch: &Switch) -> Result<(), End> {
        self.when(switch, || self.leases().completing(token, self.timer.now())).await
    }

    async fn when(&self, switch: &Switch, may: impl Fn() -> bool) -> Result<(), End> {
        let mut changes = switch.changes();
        loop {
            if let Phase::Ended(end) = &*changes.borrow_and_update() {
                return Err(end.clone());
            }
            if may() {
                return Ok(());
            }
            // After a pause the keeper says no before the heartbeat's thread has looked; then
            // there is no change to wait for yet.
            tokio::select! {
                biased;
                changed = changes.changed() => changed.expect("the switch is borrowed"),
                () = sleep_ms(&*self.timer, LOOK_AGAIN_MS) => {}
            }
        }
    }

    pub(crate) fn finished(&self, token: Number) {
        self.leases().finished(token);
    }

    pub(crate) fn give_up(&self, token: Number) {
        self.leases().give_up(token);
        self.nudge.notify_one();
    }

    /// Ends every attempt by the operator's wish.
    pub(crate) fn hand_back(&self) {
        for switch in self.leases().switches() {
            switch.end(End::HandedBack);
        }
    }

    /// Time passed: does what that asks for. Answers whether a heartbeat is due.
    pub(crate) fn tick(&self) -> bool {
        let now = self.timer.now();
        let round = self.leases().tick(now, || chance(&*self.entropy));
        self.carry_out(round.orders);
        let told = std::mem::take(&mut *lock(&self.told));
        for told in told {
            let orders = self.leases().told(&told);
            self.carry_out(orders);
        }
        round.renew | self.due.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.leases().wake_at()
    }

    pub(crate) fn trusted_for_ms(&self, now: Timestamp) -> Option<u64> {
        self.leases().trusted_for_ms(now)
    }

    pub(crate) fn beat(&self) -> Option<Beat> {
        let mut leases = self.leases();
        // The clock is read under the lock: what is sent cannot be older than it says.
        let now = self.timer.now();
        leases.beat(now)
    }

    pub(crate) fn answered(&self, beat: &Beat, response: &HeartbeatResponse) {
        self.confirmed();
        let orders = self.leases().answered(beat, response, self.timer.now());
        self.carry_out(orders);
    }

    /// The server answered a call of any kind.
    pub(crate) fn confirmed(&self) {
        if self.away.swap(false, Ordering::Relaxed) {
            self.events.post(Event::ServerBack);
        }
    }

    /// It did not; told once.
    pub(crate) fn unconfirmed(&self, error: &CallError) {
        if !self.away.swap(true, Ordering::Relaxed) {
            self.events.post(Event::ServerAway { message: error.to_string() });
        }
    }

    /// Whether the server must still hear that something is held no more.
    pub(crate) fn must_sweep(&self) -> bool {
        self.leases().must_sweep()
    }

    /// The session's connection broke: so may have the heartbeats'.
    pub(crate) fn session_broke(&self) {
        self.urgent.store(true, Ordering::Relaxed);
        self.nudge.notify_one();
    }

    /// A session is open, perhaps again: something may have been missed before.
    pub(crate) fn session_opened(&self) {
        self.due.store(true, Ordering::Relaxed);
        self.nudge.notify_one();
    }

    pub(crate) fn take_urgent(&self) -> bool {
        self.urgent.swap(false, Ordering::Relaxed)
    }

    /// The session spoke. The next tick passes it on.
    pub(crate) fn tell(&self, told: Told) {
        lock(&self.told).push(told);
        self.nudge.notify_one();
    }

    fn carry_out(&self, orders: Vec<Order>) {
        for Order { job, token, switch, act } in orders {
            let what = match act {
                Act::Paused(pause_ms) => Some(What::Paused { pause_ms }),
                Act::Freeze => {
                    switch.freeze();
                    Some(What::Frozen)
                }
                Act::Thaw => {
                    switch.thaw();
                    Some(What::Thawed)
                }
                Act::End(end) => {
                    switch.end(end);
                    // The attempt tells when all of it is gone.
                    None
                }
            };
            if let Some(what) = what {
                self.events.post(Event::Attempt(AttemptEvent { what, job, token }));
            }
        }
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        lock(&self.leases)
    }
}

/// No code of ours panics with the lock held in a way that leaves a half-made entry.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
