//! The server: takes what is waiting as one batch, decides it, commits once, then answers. It may
//! die before the commit and after it.

mod batch;
mod projector;

pub(crate) use projector::{Projector, rows};

use palisade_core::{SessionId, Timestamp};
use palisade_store::command::{Command, Suspect};

use crate::{
    designs::{Design, Effects},
    engine::Engine,
    random::Dice,
};

use super::{
    network::{Body, Message},
    outside::Receipt,
    plan::Plan,
    world::{EPOCH_MS, Event, Setting, World},
};

/// How often the server ticks, in ms.
const TICK_MS: u64 = 700;
/// A longer gap between two turns was a stop of the server's own, in ms.
const GAP_MS: u64 = 2_500;
/// How long an ended session has to come back, in ms.
const SUSPICION_MS: u64 = 2_000;

/// Something in a server's life.
#[derive(Debug, Clone)]
pub(crate) enum ServerEvent {
    /// What is waiting is taken.
    Turn,
    /// Time passes.
    Tick,
    /// A session ended some time ago.
    Suspect(SessionId, Timestamp),
    /// A delivery was answered, or its time is over.
    Heard(u64, Receipt),
}

/// Whether it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Running {
    Yes,
    Paused,
    Dead,
}

/// The server.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its records.
    pub engine: Box<dyn Engine>,
    /// What carries out what commits owe.
    pub projector: Projector,
    running: Running,
    life: u32,
    inbox: Vec<Message>,
    turn_is_due: bool,
    deferred: Vec<Event>,
    /// The clock of leases at the start of this life, and when that was.
    began: (Timestamp, u64),
    last_turn: Timestamp,
    /// How far the wall clock is off, in ms.
    wall_off_ms: i64,
    drift_ppm: i64,
}

impl Server {
    /// A server that has just started for the first time.
    pub(crate) fn new(setting: Setting) -> Self {
        let plan = Plan::of(setting);
        let mut dice = Dice::new(setting.seed).fork("server");
        let drift = i64::try_from(dice.below(plan.drift_ppm + 1)).expect("a small number");
        let start = Timestamp(EPOCH_MS);
        let mut engine = crate::engine::open(setting, start);
        if setting.design.effects() == Effects::Projected {
            projector::create_endpoints(&mut *engine, start);
        }
        Self {
            engine,
            projector: Projector::new(dice.fork("projector")),
            running: Running::Yes,
            life: 0,
            inbox: Vec::new(),
            turn_is_due: false,
            deferred: Vec::new(),
            began: (start, 0),
            last_turn: start,
            wall_off_ms: 0,
            drift_ppm: if dice.per_mille(500) { drift } else { -drift },
        }
    }

    /// The clock by which leases are counted: Palisade's counts suspended time and never jumps;
    /// a lock service goes by the wall.
    fn clock(&self, now: u64, design: Design) -> Timestamp {
        if !design.is_palisade() {
            return self.wall(now);
        }
        let since = now - self.began.1;
        let drifted = i64::try_from(since).expect("a run is short") * self.drift_ppm / 1_000_000;
        Timestamp(self.began.0.0.saturating_add(since).saturating_add_signed(drifted))
    }

    fn wall(&self, now: u64) -> Timestamp {
        Timestamp((EPOCH_MS + now).saturating_add_signed(self.wall_off_ms))
    }

    /// The wall clock jumps.
    pub(crate) fn wall_jumps(&mut self, ms: u64, ahead: bool) {
        let ms = i64::try_from(ms).expect("a jump is short");
        self.wall_off_ms += if ahead { ms } else { -ms };
    }
}

impl World {
    /// Something in the server's life, unless that life is over.
    pub(super) fn server_event(&mut self, life: u32, what: ServerEvent) {
        if self.server.life != life || self.server.running == Running::Dead {
            return;
        }
        if self.server.running == Running::Paused {
            self.server.deferred.push(Event::Server(life, what));
            return;
        }
        self.notice_gap();
        match what {
            ServerEvent::Turn => self.turn(),
            ServerEvent::Tick => {
                self.tick();
                self.after_server(TICK_MS, ServerEvent::Tick);
            }
            ServerEvent::Suspect(session, seen_at) => {
                let suspect = Command::Suspect(Suspect { session, seen_at });
                self.housekeep(&suspect);
            }
            ServerEvent::Heard(call, receipt) => self.settle(call, receipt),
        }
    }

    /// A gap of the server's own does not count against anybody: it is as good as a start.
    fn notice_gap(&mut self) {
        let now = self.server.clock(self.now, self.design);
        let gap_ms = now.since_ms(self.server.last_turn);
        if self.design.is_palisade() && gap_ms > GAP_MS {
            self.trace.tell(self.now, "server", format_args!("notices a gap of {gap_ms} ms"));
            self.server.engine.start(now);
        }
        self.server.last_turn = now;
    }

    fn after_server(&mut self, ms: u64, what: ServerEvent) {
        let life = self.server.life;
        self.schedule(self.now + ms, Event::Server(life, what));
    }

    /// A message for the server.
    pub(super) fn server_hears(&mut self, message: Message) {
        match (self.server.running, &message.body) {
            (Running::Dead, _) => return,
            (_, Body::Closed(session)) => {
                let seen_at = self.server.clock(self.now, self.design);
                let suspect = ServerEvent::Suspect(session.clone(), seen_at);
                self.after_server(SUSPICION_MS, suspect);
                return;
            }
            (_, Body::Receipt(receipt)) => {
                self.after_server(0, ServerEvent::Heard(message.call, *receipt));
                return;
            }
            (Running::Yes | Running::Paused, _) => {}
        }
        self.server.inbox.push(message);
        if !self.server.turn_is_due {
            self.server.turn_is_due = true;
            let wait_ms = self.dice.below(8);
            self.after_server(wait_ms, ServerEvent::Turn);
        }
    }

    /// The process stops.
    fn pause_server(&mut self) {
        let ms = self.dice.between(200, self.plan.pause_ms);
        self.server.running = Running::Paused;
        self.trace.tell(self.now, "server", format_args!("is paused for {ms} ms"));
        self.schedule(self.now + ms, Event::ServerResumes);
    }

    /// The process goes on.
    pub(super) fn server_resumes(&mut self) {
        if self.server.running != Running::Paused {
            return;
        }
        self.server.running = Running::Yes;
        for event in std::mem::take(&mut self.server.deferred) {
            let at = self.now + self.dice.below(3);
            self.schedule(at, event);
        }
    }

    /// The server's clock of leases.
    pub(in crate::sim) fn server_clock(&self) -> Timestamp {
        self.server.clock(self.now, self.design)
    }

    /// The process dies; what was not committed is gone.
    fn crash_server(&mut self, when: &str) {
        self.trace.tell(self.now, "server", format_args!("crashes {when}"));
        self.server.engine.crash();
        self.server.running = Running::Dead;
        self.server.inbox.clear();
        self.server.deferred.clear();
        self.server.turn_is_due = false;
        self.server.projector.forget();
        self.server.life += 1;
        let back_ms = self.dice.between(100, self.plan.ttl_ms * 2);
        self.schedule(self.now + back_ms, Event::ServerStarts);
    }

    /// The process starts: at the later of the wall clock and what was recorded.
    pub(super) fn server_starts(&mut self) {
        if self.server.running != Running::Dead {
            return;
        }
        self.server.running = Running::Yes;
        let wall = self.server.wall(self.now);
        let start = self.server.engine.start(wall);
        self.server.began = (start, self.now);
        self.server.last_turn = start;
        self.trace.tell(self.now, "server", format_args!("starts"));
        self.after_server(1, ServerEvent::Tick);
    }
}
