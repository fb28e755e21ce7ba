//! A small virtual network: one store that follows the rules, two workers that follow their
//! keepers, one job. Messages are late or lost, workers are paused, the store crashes and starts
//! again, and all clocks differ by as much as they may.

use std::collections::BTreeMap;

use super::{virtual_store::Store, *};
use crate::{Number, lease::Pair, transition::Beat};

/// How bad the days are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    pub(super) seed: u64,
    pub(super) ttl_ms: u64,
    /// How much faster each worker's clock runs than the store's, in millionths.
    pub(super) drift_ppm: [i64; 2],
    pub(super) delay_ms_max: u64,
    /// Of a hundred messages.
    pub(super) lost: u64,
    /// One in so many of a worker's ticks is followed by a pause.
    pub(super) pause_each: u64,
    /// One in so many of the store's messages meets a crash.
    pub(super) crash_each: u64,
}

/// What came of it: so that a test can tell that it saw something.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) grants: u64,
    pub(super) looks_that_may_act: u64,
    pub(super) pauses: u64,
    pub(super) crashes: u64,
    pub(super) aborts: u64,
}

#[derive(Clone)]
enum Message {
    /// A worker's own alarm.
    Wake {
        worker: usize,
    },
    Claim {
        worker: usize,
        sent_at: Timestamp,
    },
    Granted {
        worker: usize,
        pair: Pair,
        sent_at: Timestamp,
        waited_ms: u64,
    },
    Beat {
        worker: usize,
        pair: Pair,
        sent_at: Timestamp,
    },
    Told {
        worker: usize,
        pair: Pair,
        sent_at: Timestamp,
        beat: Option<Beat>,
    },
    /// The store's own alarm.
    Serve,
    Start {
        recorded_at: u64,
    },
}

#[derive(Default)]
struct Worker {
    held: Option<(Pair, Keeper)>,
    claimed_at: Option<u64>,
    paused_until: u64,
}

pub(super) struct Net {
    weather: Weather,
    calm: bool,
    now: u64,
    queue: BTreeMap<(u64, u64), Message>,
    sent: u64,
    chance: u64,
    workers: [Worker; 2],
    store: Store,
    pub(super) seen: Seen,
}

impl Net {
    pub(super) fn new(weather: Weather) -> Self {
        let mut net = Self {
            weather,
            calm: false,
            now: 0,
            queue: BTreeMap::new(),
            sent: 0,
            chance: weather.seed,
            workers: [Worker::default(), Worker::default()],
            store: Store::new(weather.ttl_ms),
            seen: Seen::default(),
        };
        net.post(0, Message::Wake { worker: 0 });
        net.post(0, Message::Wake { worker: 1 });
        net
    }

    /// Lets so much time pass. At every instant at which something happens, everybody looks.
    pub(super) fn run(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(((at, _), message)) = self.queue.pop_first() {
            if at >= end {
                self.post(at, message);
                break;
            }
            self.now = at;
            self.look();
            self.arrive(message);
            self.look();
        }
        self.now = end;
    }

    /// From now on nothing is lost, late or paused.
    pub(super) fn clear_up(&mut self) {
        self.calm = true;
    }

    /// The workers that may act now.
    pub(super) fn acting(&self) -> Vec<Number> {
        let held = self.workers.iter().enumerate().filter_map(|(index, worker)| {
            let (pair, keeper) = worker.held.as_ref()?;
            keeper.may_act(self.clock_of(index)).then_some(pair.token)
        });
        held.collect()
    }

    /// Whoever may act holds the only open attempt.
    fn look(&mut self) {
        let acting = self.acting();
        self.seen.looks_that_may_act += acting.len() as u64;
        for token in acting {
            assert_eq!(self.store.open(), [token], "at {} ms, {:?}", self.now, self.weather);
        }
    }

    fn post(&mut self, at: u64, message: Message) {
        self.sent += 1;
        self.queue.insert((at, self.sent), message);
    }

    /// Sends over the network.
    fn send(&mut self, message: Message) {
        let lost = self.roll(100) < self.weather.lost;
        let mut delay_ms = self.roll(50) + 1;
        if self.roll(4) == 0 {
            delay_ms = self.roll(self.weather.delay_ms_max + 1);
        }
        if self.calm {
            self.post(self.now + 20, message);
            return;
        }
        if self.roll(20) == 0 {
            // Some arrive twice, the second time much later.
            let again_ms = self.roll(2 * self.weather.ttl_ms);
            self.post(self.now + delay_ms + again_ms, message.clone());
        }
        if !lost {
            self.post(self.now + delay_ms, message);
        }
    }

    /// The next random number below `below` (splitmix64).
    fn roll(&mut self, below: u64) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// A worker's clock: it began elsewhere, and runs at its own speed.
    fn clock_of(&self, worker: usize) -> Timestamp {
        let ppm = 1_000_000_u64.strict_add_signed(self.weather.drift_ppm[worker]);
        Timestamp(777_000 * (worker as u64 + 1) + self.now * ppm / 1_000_000)
    }

    fn arrive(&mut self, message: Message) {
        self.receive(message);
        for deadline in std::mem::take(&mut self.store.alarms) {
            self.post(deadline.max(self.now), Message::Serve);
        }
    }

    fn receive(&mut self, message: Message) {
        let worker = match &message {
            Message::Wake { worker }
            | Message::Granted { worker, .. }
            | Message::Told { worker, .. } => Some(*worker),
            _ => None,
        };
        if let Some(worker) = worker
            && self.now < self.workers[worker].paused_until
        {
            // Whatever came meanwhile is read once it goes on, in the order in which it came.
            return self.post(self.workers[worker].paused_until, message);
        }
        match message {
            Message::Wake { worker } => self.wake(worker),
            Message::Granted { worker, pair, sent_at, waited_ms } => {
                let now = self.clock_of(worker);
                let chance = self.roll(u64::MAX);
                let worker = &mut self.workers[worker];
                if worker.held.is_none() {
                    let config = KeeperConfig::for_ttl(self.weather.ttl_ms, 40_000);
                    let keeper = Keeper::granted(config, sent_at, waited_ms, now, chance);
                    worker.held = Some((pair, keeper));
                }
                worker.claimed_at = None;
            }
            Message::Told { worker, pair, sent_at, beat } => {
                self.told(worker, pair, sent_at, beat.as_ref());
            }
            Message::Start { recorded_at } => self.store.start(recorded_at, self.now),
            Message::Claim { .. } | Message::Beat { .. } | Message::Serve if !self.store.up => {}
            Message::Serve => self.serve(),
            Message::Claim { worker, sent_at } => {
                self.store.wait(worker, sent_at, self.now);
                self.serve();
                self.crash_perhaps();
            }
            Message::Beat { worker, pair, sent_at } => {
                let beat = self.store.beat(pair, self.now);
                self.send(Message::Told { worker, pair, sent_at, beat });
                self.crash_perhaps();
            }
        }
    }

    fn wake(&mut self, index: usize) {
        let (now, chance) = (self.clock_of(index), self.roll(u64::MAX));
        let lateness_ms = if self.calm { 0 } else { self.roll(30) };
        let worker = &mut self.workers[index];
        let mut messages = Vec::new();
        if let Some((pair, keeper)) = &mut worker.held {
            for action in keeper.tick(now, chance) {
                match action {
                    Action::Renew => {
                        messages.push(Message::Beat { worker: index, pair: *pair, sent_at: now });
                    }
                    Action::Abort(_) => self.seen.aborts += 1,
                    Action::Freeze | Action::Thaw | Action::ReportPause(_) => {}
                }
            }
            if keeper.state() == State::Lost {
                worker.held = None;
            }
        } else if worker.claimed_at.is_none_or(|at| self.now >= at + 70_000) {
            worker.claimed_at = Some(self.now);
            messages.push(Message::Claim { worker: index, sent_at: now });
        }
        let wake_at = worker.held.as_ref().map_or(now.plus_ms(500), |(_, keeper)| keeper.wake_at());
        // Within a ms of when its own clock shows it, and a little late, as threads are.
        let sleep_ms = (wake_at.since_ms(now) * 999 / 1_000).max(1) + lateness_ms;
        for message in messages {
            self.send(message);
        }
        self.post(self.now + sleep_ms, Message::Wake { worker: index });
        if !self.calm && self.roll(self.weather.pause_each) == 0 {
            self.seen.pauses += 1;
            self.workers[index].paused_until = self.now + self.roll(3 * self.weather.ttl_ms);
        }
    }

    fn told(&mut self, index: usize, pair: Pair, sent_at: Timestamp, beat: Option<&Beat>) {
        let now = self.clock_of(index);
        let worker = &mut self.workers[index];
        let Some((_, keeper)) = worker.held.as_mut().filter(|(held, _)| *held == pair) else {
            return;
        };
        let wanted = match beat {
            Some(Beat::Held) => keeper.confirmed(sent_at, now),
            Some(Beat::Lost(_) | Beat::Cancelled) => keeper.refused(AbortReason::Lost),
            None => keeper.refused(AbortReason::UnknownToken),
        };
        if let [Action::Abort(_)] = wanted.as_slice() {
            self.seen.aborts += 1;
            worker.held = None;
        }
    }

    fn serve(&mut self) {
        if let Some(((worker, sent_at, since), pair)) = self.store.serve(self.now) {
            self.seen.grants += 1;
            let waited_ms = self.now - since;
            self.send(Message::Granted { worker, pair, sent_at, waited_ms });
        }
    }

    fn crash_perhaps(&mut self) {
        if self.calm || self.roll(self.weather.crash_each) != 0 {
            return;
        }
        self.seen.crashes += 1;
        self.store.crash();
        let recorded_at = self.now - self.roll(1_000).min(self.now);
        let away_ms = self.roll(2 * self.weather.ttl_ms);
        self.post(self.now + away_ms, Message::Start { recorded_at });
    }
}
