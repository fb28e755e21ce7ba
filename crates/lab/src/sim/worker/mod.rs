//! A worker: one thread that works, one that keeps the lease, both of which stop when the process
//! is paused and go on in any order when it is not.

mod claiming;
mod lease;
mod steps;
mod task;

pub(crate) use task::{Stage, Step, Task, manifest_of};

use palisade_core::{LeaseId, RequestId, SessionId, Timestamp};

use crate::random::Dice;

use super::{
    network::{Address, Body, Message},
    plan::Plan,
    world::{EPOCH_MS, Event, World},
};

/// Something in a worker's life. A life that has ended hears nothing more.
#[derive(Debug, Clone)]
pub(crate) enum WorkerEvent {
    /// It starts.
    Begin,
    /// It looks for work.
    Seek,
    /// A claim was not answered.
    ClaimLate(u64),
    /// The next instruction of the task with this number.
    Instruction(u64),
    /// The keeper of the task with this number wants to be ticked.
    Keep(u64),
    /// A call of the task with this number was not answered.
    CallLate(u64, u64),
    /// It tells the server that it is there.
    IdleBeat,
}

/// What a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Running {
    /// It runs.
    Yes,
    /// It is stopped, and does not know.
    Paused,
    /// It died.
    Dead,
}

/// A claim that was not answered yet.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    /// Asked again, the id stays.
    pub request_id: RequestId,
    /// The call.
    pub call: u64,
    /// The last heartbeat sent before it.
    pub seq: u64,
    /// The other half of the pair, should it be granted.
    pub lease_id: LeaseId,
    /// When it was sent first, on the worker's clock.
    pub sent_at: Timestamp,
    /// When it was sent first, in ms of the world.
    pub asked_at: u64,
}

/// A worker.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Which.
    pub index: usize,
    /// How often it has been started.
    pub life: u32,
    /// Whether it runs.
    pub running: Running,
    /// Its session.
    pub session: SessionId,
    /// The last heartbeat sent.
    pub seq: u64,
    /// The claim that is under way.
    pub pending: Option<Pending>,
    /// What it works on.
    pub task: Option<Task>,
    claims: u64,
    tasks: u64,
    offset_ms: u64,
    drift_ppm: i64,
    deferred: Vec<Event>,
}

impl Worker {
    /// A worker that has not begun.
    pub(crate) fn new(index: usize, plan: &Plan, dice: &Dice) -> Self {
        let mut dice = dice.fork(&format!("worker {index}"));
        let drift = i64::try_from(dice.below(plan.drift_ppm + 1)).expect("a small number");
        Self {
            index,
            life: 0,
            running: Running::Yes,
            session: World::new_session(&mut dice),
            seq: 0,
            pending: None,
            task: None,
            claims: 0,
            tasks: 0,
            offset_ms: dice.below(1_000_000_000),
            drift_ppm: if dice.per_mille(500) { drift } else { -drift },
            deferred: Vec::new(),
        }
    }

    /// Its own clock, which counts suspended time, drifts, and began whenever it did.
    pub(crate) fn clock(&self, now: u64) -> Timestamp {
        let drifted = i64::try_from(now).expect("a run is short") * self.drift_ppm / 1_000_000;
        let began = EPOCH_MS + self.offset_ms;
        Timestamp(began.saturating_add(now).saturating_add_signed(drifted))
    }

    /// What its operator calls it.
    pub(crate) fn name(&self) -> String {
        format!("worker-{}", self.index)
    }
}

impl World {
    /// Something in a worker's life, unless that life is over.
    pub(super) fn worker_event(&mut self, index: usize, life: u32, what: WorkerEvent) {
        let worker = &mut self.workers[index];
        if worker.life != life || worker.running == Running::Dead {
            return;
        }
        if worker.running == Running::Paused {
            worker.deferred.push(Event::Worker(index, life, what));
            return;
        }
        match what {
            WorkerEvent::Begin => {
                self.after(index, 1, WorkerEvent::Seek);
                if self.design.has_keeper() {
                    self.after(index, self.plan.ttl_ms / 3, WorkerEvent::IdleBeat);
                }
            }
            WorkerEvent::Seek => self.seek(index),
            WorkerEvent::ClaimLate(call) => self.claim_late(index, call),
            WorkerEvent::Instruction(task) => self.instruction(index, task),
            WorkerEvent::Keep(task) => self.keep_lease(index, task),
            WorkerEvent::CallLate(task, call) => self.call_late(index, task, call),
            WorkerEvent::IdleBeat => self.idle_beat(index),
        }
    }

    /// A message for a worker.
    pub(super) fn worker_hears(&mut self, index: usize, call: u64, body: Body) {
        let worker = &mut self.workers[index];
        match worker.running {
            Running::Dead => return,
            Running::Paused => {
                let (from, to) = (Address::Server, Address::Worker(index));
                worker.deferred.push(Event::Deliver(Message { from, to, call, body }));
                return;
            }
            Running::Yes => {}
        }
        match body {
            Body::Answer(answer) => {
                let claimed = worker.pending.as_ref().is_some_and(|pending| pending.call == call);
                if claimed {
                    self.claim_answered(index, *answer);
                } else {
                    self.call_answered(index, call, *answer);
                }
            }
            Body::Receipt(receipt) => self.effect_answered(index, call, receipt),
            Body::PutDone(done) => self.put_answered(index, call, done),
            _ => {}
        }
    }

    /// Schedules something in the worker's present life.
    pub(super) fn after(&mut self, index: usize, ms: u64, what: WorkerEvent) {
        let life = self.workers[index].life;
        self.schedule(self.now + ms, Event::Worker(index, life, what));
    }

    /// The process stops, whatever it was about to do.
    pub(super) fn pause(&mut self, index: usize, ms: u64) {
        let worker = &mut self.workers[index];
        worker.running = Running::Paused;
        let name = worker.name();
        self.trace.tell(self.now, &name, format_args!("is paused for {ms} ms"));
        self.schedule(self.now + ms, Event::Resume(index));
    }

    /// The process goes on: whatever waited happens now, in no particular order.
    pub(super) fn resume(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        if worker.running != Running::Paused {
            return;
        }
        worker.running = Running::Yes;
        let name = worker.name();
        let deferred = std::mem::take(&mut worker.deferred);
        self.trace.tell(self.now, &name, format_args!("goes on"));
        for event in deferred {
            let at = self.now + self.dice.below(5);
            self.schedule(at, event);
        }
    }

    /// The process dies. If its host lives, the kernel closes its connections.
    pub(super) fn crash_worker(&mut self, index: usize) {
        let host_too = self.dice.per_mille(self.plan.host);
        let back_at = self.now + self.dice.between(500, self.plan.ttl_ms * 2);
        let worker = &mut self.workers[index];
        worker.running = Running::Dead;
        worker.deferred.clear();
        worker.pending = None;
        let (name, session) = (worker.name(), worker.session.clone());
        if let Some(task) = worker.task.take() {
            self.tally.orphan(task.job, self.now);
        }
        let how = if host_too { "dies with its host" } else { "crashes" };
        self.trace.tell(self.now, &name, format_args!("{how}"));
        if !host_too && self.design.is_palisade() {
            let (from, to) = (Address::Worker(index), Address::Server);
            self.send(Message { from, to, call: 0, body: Body::Closed(session) });
        }
        self.schedule(back_at, Event::Restart(index));
    }

    /// The machine starts the worker again, under its old name and a new session.
    pub(super) fn restart(&mut self, index: usize) {
        if self.workers[index].running != Running::Dead {
            return;
        }
        let session = Self::new_session(&mut self.dice);
        let worker = &mut self.workers[index];
        worker.life += 1;
        worker.running = Running::Yes;
        worker.session = session;
        worker.seq = 0;
        self.after(index, 1, WorkerEvent::Begin);
    }
}
