//! A clock that stands until it is moved, and knows who waits on it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use palisade_core::{Timestamp, clock::Clock};
use tokio::sync::watch;

use crate::{heartbeat::THREAD_NAME, timer::Timer};

#[derive(Debug)]
pub(crate) struct ManualClock {
    now: watch::Sender<u64>,
    sleepers: Mutex<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    next: u64,
    /// Each with when it wants to be woken, and whether it is on the heartbeat's thread.
    waiting: BTreeMap<u64, (u64, bool)>,
}

struct Registered<'a> {
    clock: &'a ManualClock,
    id: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.clock.sleepers().waiting.remove(&self.id);
    }
}

impl ManualClock {
    pub(crate) fn new() -> Self {
        Self { now: watch::Sender::new(1_000_000), sleepers: Mutex::default() }
    }

    /// Moves on to the next instant that anybody waits for, by `most_ms` at most. Does nothing
    /// and answers false while the heartbeat's thread is busy with the present one: otherwise a
    /// slow machine would look like a pause.
    pub(crate) fn step(&self, most_ms: u64) -> bool {
        let now = *self.now.borrow();
        let sleepers = self.sleepers();
        let woken = sleepers.waiting.values().any(|(at, _)| *at <= now);
        let parked = sleepers.waiting.values().any(|(_, heartbeat)| *heartbeat);
        if woken || !parked {
            return false;
        }
        let next = sleepers.waiting.values().map(|(at, _)| *at).min().unwrap_or(u64::MAX);
        drop(sleepers);
        self.now.send_replace(next.min(now + most_ms));
        true
    }

    /// Jumps, whoever is ready or not: as a process that was stopped.
    pub(crate) fn jump(&self, ms: u64) {
        self.now.send_modify(|now| *now += ms);
    }

    fn sleepers(&self) -> std::sync::MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, at: u64) -> Registered<'_> {
        let heartbeat = std::thread::current().name() == Some(THREAD_NAME);
        let mut sleepers = self.sleepers();
        sleepers.next += 1;
        let id = sleepers.next;
        sleepers.waiting.insert(id, (at, heartbeat));
        Registered { clock: self, id }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(*self.now.borrow())
    }
}

#[async_trait]
impl Timer for ManualClock {
    async fn sleep_until(&self, at: Timestamp) {
        let mut now = self.now.subscribe();
        let _registered = self.register(at.0);
        now.wait_for(|now| *now >= at.0).await.expect("the clock is borrowed");
    }
}
