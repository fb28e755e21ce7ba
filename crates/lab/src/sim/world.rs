//! The world: one thread, virtual time, a queue of what happens next.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{Digest, Number, SessionId};

use crate::{designs::Design, random::Dice, sabotage::Sabotage};

use super::{
    locker::Lockers,
    network::{Address, Message, Network},
    outside::Outside,
    plan::Plan,
    server::{Server, ServerEvent},
    stranger::Stranger,
    submitter::Submitter,
    tally::Tally,
    trace::Trace,
    worker::{Worker, WorkerEvent},
};

/// The wall clock when a run begins: 2030-01-01.
pub(crate) const EPOCH_MS: u64 = 1_893_456_000_000;

/// Something that happens at an instant.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A message arrives.
    Deliver(Message),
    /// Something in a worker's life.
    Worker(usize, u32, WorkerEvent),
    /// A stopped worker goes on.
    Resume(usize),
    /// A dead worker's machine starts it again.
    Restart(usize),
    /// Something in a server's life.
    Server(u32, ServerEvent),
    /// A stopped server goes on.
    ServerResumes,
    /// A dead server starts again.
    ServerStarts,
    /// A wish is sent, for the first time or again.
    Submit(usize),
    /// A wish is withdrawn, or asked to be again.
    Withdraw(usize),
    /// The operator looks for failed jobs.
    OperatorLooks,
    /// The stranger tries something.
    StrangerTries,
    /// Somebody who uses a lock takes its next step.
    Locker(usize),
    /// Somebody cuts cables, or moves clocks.
    Trouble,
    /// A cut cable is mended.
    Mend(Address, Address),
    /// The faults end.
    Heal,
    /// Is everything done?
    Look,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    /// Milliseconds since the run began, by no clock of the world.
    pub now: u64,
    /// The design under test.
    pub design: Design,
    /// What the seed has in store.
    pub plan: Plan,
    /// Chance.
    pub dice: Dice,
    /// Whether the faults are over.
    pub healed: bool,
    /// Cables.
    pub network: Network,
    /// The server.
    pub server: Server,
    /// The workers.
    pub workers: Vec<Worker>,
    /// Who submits.
    pub submitter: Submitter,
    /// Who means no good.
    pub stranger: Stranger,
    /// Who uses a lock.
    pub lockers: Lockers,
    /// Where effects land.
    pub outside: Outside,
    /// What the object store holds.
    pub blobs: BTreeSet<(Digest, Number)>,
    /// What is counted.
    pub tally: Tally,
    /// What is told.
    pub trace: Trace,
    /// A deliberate fault.
    pub broken: Option<Sabotage>,
    /// Calls so far.
    pub calls: u64,
    queue: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    over: bool,
}

/// What a run is of.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// The seed.
    pub seed: u64,
    /// The design.
    pub design: Design,
    /// A deliberate fault.
    pub broken: Option<Sabotage>,
    /// Whether the server keeps its records in SQLite.
    pub sqlite: bool,
    /// Whether what happens is written down.
    pub traced: bool,
    /// Whether nothing fails: the same work on a day without a fault.
    pub clean: bool,
}

impl World {
    /// A world at its beginning.
    pub(crate) fn new(setting: Setting) -> Self {
        let plan = Plan::of(setting);
        let dice = Dice::new(setting.seed).fork(setting.design.name());
        let workers = (0..plan.workers).map(|index| Worker::new(index, &plan, &dice)).collect();
        let mut world = Self {
            now: 0,
            design: setting.design,
            healed: false,
            network: Network::default(),
            server: Server::new(setting),
            workers,
            submitter: Submitter::new(&plan, setting.design),
            stranger: Stranger::default(),
            lockers: if setting.design.is_palisade() {
                Lockers::new(&Dice::new(setting.seed))
            } else {
                Lockers::default()
            },
            outside: Outside::new(setting.broken),
            blobs: BTreeSet::new(),
            tally: Tally::default(),
            trace: Trace::new(setting.traced),
            broken: setting.broken,
            calls: 0,
            queue: BTreeMap::new(),
            scheduled: 0,
            over: false,
            plan,
            dice,
        };
        world.set_going();
        world
    }

    fn set_going(&mut self) {
        for index in 0..self.workers.len() {
            self.schedule(index as u64, Event::Worker(index, 0, WorkerEvent::Begin));
        }
        self.schedule(0, Event::Server(0, ServerEvent::Tick));
        for (index, at_ms) in self.submitter.schedule() {
            self.schedule(at_ms, Event::Submit(index));
        }
        for index in 0..self.lockers.people.len() {
            self.schedule(1_000 + 3_000 * index as u64, Event::Locker(index));
        }
        self.schedule(5_000, Event::OperatorLooks);
        self.schedule(7_000, Event::StrangerTries);
        self.schedule(1_000, Event::Trouble);
        self.schedule(self.plan.heal_at_ms, Event::Heal);
    }

    /// Lets something happen later.
    pub(crate) fn schedule(&mut self, at: u64, event: Event) {
        self.scheduled += 1;
        self.queue.insert((at.max(self.now), self.scheduled), event);
    }

    /// Runs to the end.
    pub(crate) fn run(&mut self) {
        let end = self.plan.heal_at_ms + self.plan.bound_ms;
        while let Some(((at, _), event)) = self.queue.pop_first() {
            if self.over || at > end {
                break;
            }
            self.now = at;
            self.tally.steps += 1;
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deliver(message) => self.deliver(message),
            Event::Worker(index, life, what) => self.worker_event(index, life, what),
            Event::Resume(index) => self.resume(index),
            Event::Restart(index) => self.restart(index),
            Event::Server(life, what) => self.server_event(life, what),
            Event::ServerResumes => self.server_resumes(),
            Event::ServerStarts => self.server_starts(),
            Event::Submit(index) => self.submit(index),
            Event::Withdraw(index) => self.withdraw(index),
            Event::OperatorLooks => self.operator_looks(),
            Event::StrangerTries => self.stranger_tries(),
            Event::Locker(index) => self.locker_steps(index),
            Event::Trouble => self.trouble(),
            Event::Mend(from, to) => {
                self.network.cut.remove(&(from, to));
            }
            Event::Heal => self.heal(),
            Event::Look => self.look(),
        }
    }

    /// Once a second: partitions begin, clocks jump.
    fn trouble(&mut self) {
        if self.healed {
            return;
        }
        for index in 0..self.workers.len() {
            if self.dice.per_mille(self.plan.partition / 20) {
                self.cut(index);
            }
        }
        if self.dice.per_mille(self.plan.clock_jump / 20) {
            let jump = self.dice.between(0, self.plan.clock_jump_ms);
            self.server.wall_jumps(jump, self.dice.per_mille(500));
            self.trace.tell(self.now, "server", format_args!("the wall clock jumps {jump} ms"));
        }
        self.schedule(self.now + 1_000, Event::Trouble);
    }

    fn cut(&mut self, index: usize) {
        let worker = Address::Worker(index);
        let until = self.now + self.dice.between(1_000, self.plan.ttl_ms * 3);
        let others = [Address::Server, Address::Outside, Address::Blobs];
        // Either way by itself, and not always from everybody.
        for other in others {
            for (from, to) in [(worker, other), (other, worker)] {
                if self.dice.per_mille(600) {
                    self.network.cut.insert((from, to));
                    self.schedule(until, Event::Mend(from, to));
                }
            }
        }
        let actor = format!("worker-{index}");
        let ms = until - self.now;
        self.trace.tell(self.now, &actor, format_args!("is cut off for {ms} ms"));
    }

    /// Faults end: who is stopped goes on, who is dead starts, cables hold.
    fn heal(&mut self) {
        self.healed = true;
        self.trace.tell(self.now, "world", format_args!("the faults end; everything must finish"));
        self.network.cut.clear();
        for index in 0..self.workers.len() {
            self.schedule(self.now + 1, Event::Resume(index));
            self.schedule(self.now + 1, Event::Restart(index));
        }
        self.schedule(self.now + 1, Event::ServerResumes);
        self.schedule(self.now + 1, Event::ServerStarts);
        self.schedule(self.now + 2_000, Event::Look);
    }

    fn look(&mut self) {
        let late = self.now > self.network.last_arrival + 1_000
            && self.now > self.plan.heal_at_ms + self.plan.ttl_ms;
        self.over = late && self.everything_is_done();
        self.schedule(self.now + 2_000, Event::Look);
    }

    fn everything_is_done(&self) -> bool {
        let idle = self.workers.iter().all(|worker| worker.task.is_none());
        idle && self.submitter.is_done()
            && self.jobs_are_over()
            && self.owes_nothing()
            && self.lockers.are_done()
    }

    /// A session id nobody has used.
    pub(crate) fn new_session(dice: &mut Dice) -> SessionId {
        format!("s{:032x}", dice.next_u128()).parse().expect("hexadecimal digits are fine")
    }
}
