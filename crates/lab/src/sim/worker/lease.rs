//! Keeping the lease: the real keeper, its ticks, and the heartbeats that it asks for.

use palisade_core::keeper::{AbortReason, Action};
use palisade_core::transition::Beat;
use palisade_store::command::{Beats, Command, Heartbeat};

use crate::sim::{network::Address, world::World};

use super::WorkerEvent;

impl World {
    /// Ticks the keeper when it next wants to be.
    pub(super) fn tick_later(&mut self, index: usize) {
        let worker = &self.workers[index];
        let now = worker.clock(self.now);
        let Some(task) = &worker.task else { return };
        let Some(keeper) = &task.keeper else { return };
        let wait_ms = keeper.wake_at().since_ms(now).max(1);
        let number = task.number;
        self.after(index, wait_ms, WorkerEvent::Keep(number));
    }

    /// The keeper's thread has its turn.
    pub(super) fn keep_lease(&mut self, index: usize, number: u64) {
        let chance = self.dice.draw();
        let worker = &mut self.workers[index];
        let now = worker.clock(self.now);
        let Some(task) = worker.task.as_mut().filter(|task| task.number == number) else { return };
        let Some(keeper) = &mut task.keeper else { return };
        let actions = keeper.tick(now, chance);
        self.act(index, actions);
        self.tick_later(index);
    }

    /// Does what the keeper wants done.
    fn act(&mut self, index: usize, actions: Vec<Action>) {
        for action in actions {
            let Some(task) = &mut self.workers[index].task else { return };
            match action {
                Action::ReportPause(ms) => task.pauses.push(ms),
                Action::Freeze => {
                    task.frozen = true;
                    let name = self.workers[index].name();
                    self.trace.tell(self.now, &name, format_args!("doubts, and freezes"));
                }
                Action::Renew => self.send_beat(index),
                Action::Thaw => {
                    task.frozen = false;
                    let waits = std::mem::take(&mut task.waits_for_thaw);
                    let number = task.number;
                    if waits {
                        self.after(index, 0, WorkerEvent::Instruction(number));
                    }
                }
                Action::Abort(reason) => {
                    let why = match reason {
                        AbortReason::Lost => "aborts, its lease is lost",
                        AbortReason::Cancelled => "aborts, nobody wants it any more",
                        AbortReason::UnknownToken => "aborts, its pair is unknown",
                        AbortReason::DoubtGraceOver => "aborts, nobody confirmed its lease",
                    };
                    self.drop_task(index, why);
                }
            }
        }
    }

    fn send_beat(&mut self, index: usize) {
        let call = self.new_call();
        let worker = &mut self.workers[index];
        let now = worker.clock(self.now);
        worker.seq += 1;
        let mut leases = Vec::new();
        let mut pauses = Vec::new();
        if let Some(task) = &mut worker.task {
            task.beats.insert(call, now);
            leases.push((task.job, task.pair));
            let reported = std::mem::take(&mut task.pauses);
            pauses.extend(reported.into_iter().map(|ms| (task.job, task.pair, ms)));
        }
        let pending = worker.pending.iter().map(|pending| pending.request_id.clone()).collect();
        let (session, seq) = (worker.session.clone(), worker.seq);
        let beat = Heartbeat { session, seq, leases, pending, pauses };
        self.command(Address::Worker(index), call, Command::Heartbeat(beat));
    }

    /// A worker without a task beats too: grants that it never heard of are handed back.
    pub(super) fn idle_beat(&mut self, index: usize) {
        if self.workers[index].task.is_none() {
            self.send_beat(index);
        }
        self.after(index, self.plan.ttl_ms / 3, WorkerEvent::IdleBeat);
    }

    /// A heartbeat of the present task was answered. Answers whether it was one.
    pub(super) fn beat_answered(&mut self, index: usize, call: u64, beats: &Beats) -> bool {
        let worker = &mut self.workers[index];
        let now = worker.clock(self.now);
        let Some(task) = &mut worker.task else { return false };
        let Some(sent_at) = task.beats.remove(&call) else { return false };
        let Some(keeper) = &mut task.keeper else { return true };
        let actions = match beats.leases.first() {
            Some(Some(Beat::Held)) => keeper.confirmed(sent_at, now),
            Some(Some(Beat::Lost(_))) => keeper.refused(AbortReason::Lost),
            Some(Some(Beat::Cancelled)) => keeper.refused(AbortReason::Cancelled),
            Some(None) => keeper.refused(AbortReason::UnknownToken),
            None => Vec::new(),
        };
        self.act(index, actions);
        true
    }
}
