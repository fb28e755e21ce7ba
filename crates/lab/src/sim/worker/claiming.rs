//! Looking for work.

use palisade_core::{
    Digest, LeaseId,
    keeper::{Keeper, KeeperConfig},
};
use palisade_store::{
    Failure,
    command::{Answer, Claim, Claimed, Command, Grant},
};

use crate::sim::{
    network::{Address, Body, Message},
    submitter::capability,
    tally::{Received, Rendering},
    world::World,
};

use super::{Pending, Stage, Step, Task, WorkerEvent, task};

/// How long a claim waits for its answer before it is asked again, in ms.
const CLAIM_PATIENCE_MS: u64 = 2_000;
/// How long a worker that got nothing waits, in ms.
const IDLE_MS: u64 = 1_500;

impl World {
    /// Asks for a job, unless it has one or asks already.
    pub(super) fn seek(&mut self, index: usize) {
        let lease_id = LeaseId(self.dice.next_u128());
        let call = self.new_call();
        let now = self.now;
        let worker = &mut self.workers[index];
        if worker.pending.is_some() || worker.task.is_some() {
            return;
        }
        worker.claims += 1;
        let request_id = format!("c{}-{}-{}", worker.index, worker.life, worker.claims);
        let request_id = request_id.parse().expect("a fine id");
        let (seq, sent_at) = (worker.seq, worker.clock(now));
        let asked_at = now;
        worker.pending = Some(Pending { request_id, call, seq, lease_id, sent_at, asked_at });
        self.send_claim(index);
    }

    fn send_claim(&mut self, index: usize) {
        let worker = &self.workers[index];
        let Some(pending) = &worker.pending else { return };
        let claim = Claim {
            worker: worker.name().parse().expect("a fine name"),
            session: worker.session.clone(),
            request_id: pending.request_id.clone(),
            seq: pending.seq,
            ttl_ms: self.plan.ttl_ms,
            capabilities: vec![capability()],
            lease_ids: vec![pending.lease_id],
        };
        let call = pending.call;
        self.command(Address::Worker(index), call, Command::Claim(claim));
        self.after(index, CLAIM_PATIENCE_MS, WorkerEvent::ClaimLate(call));
    }

    /// Sends a command to the server.
    pub(crate) fn command(&mut self, from: Address, call: u64, command: Command) {
        let body = Body::Command(Box::new(command));
        self.send(Message { from, to: Address::Server, call, body });
    }

    /// A claim was not answered: the same again.
    pub(super) fn claim_late(&mut self, index: usize, call: u64) {
        if self.workers[index].pending.as_ref().is_some_and(|pending| pending.call == call) {
            self.send_claim(index);
        }
    }

    /// A claim was answered.
    pub(super) fn claim_answered(&mut self, index: usize, answer: Result<Answer, Failure>) {
        // Anything but an answer leaves the claim as it is; it is asked again.
        let Ok(Answer::Claim(claimed)) = answer else { return };
        let Claimed { mut grants, .. } = claimed;
        let pending = self.workers[index].pending.take().expect("its call was found");
        let Some(grant) = grants.pop() else {
            let wait_ms = self.dice.between(IDLE_MS / 2, IDLE_MS);
            self.after(index, wait_ms, WorkerEvent::Seek);
            return;
        };
        self.tally.received.push(Received {
            asked_at: pending.asked_at,
            at: self.now,
            job: grant.job.id,
            claim: pending.request_id.clone(),
            pair: grant.pair,
        });
        let (token, times) = (grant.pair.token, (pending.asked_at, self.now));
        self.tally.granted(grant.job.id, token, times);
        self.tally.adopt(grant.job.id, self.now);
        let name = self.workers[index].name();
        let (job, token) = (grant.job.id, grant.pair.token);
        self.trace.tell(self.now, &name, format_args!("is granted {job} under token {token}"));
        self.begin(index, &grant, &pending);
    }

    fn begin(&mut self, index: usize, grant: &Grant, pending: &Pending) {
        let render_ms = self.submitter.render_ms(&grant.job);
        // A bit-exact renderer makes the same bytes each time; others stamp them with the attempt.
        let differs =
            self.plan.bytes_differ && self.design.effects() != crate::designs::Effects::Fenced;
        let stamp = if differs { grant.pair.lease_id.0 } else { 0 };
        let content = Digest::of(format!("{} {stamp}", grant.job.key).as_bytes());
        let chance = self.dice.draw();
        let ttl_ms = self.plan.ttl_ms;
        let keeper = self.design.has_keeper().then(|| {
            let config = KeeperConfig::for_ttl(ttl_ms, ttl_ms * 4);
            let now = self.workers[index].clock(self.now);
            Keeper::granted(config, pending.sent_at, 0, now, chance)
        });
        let rendering = self.tally.renderings.len();
        let (job, spent_ms, whole) = (grant.job.id, 0, false);
        self.tally.renderings.push(Rendering { job, content, spent_ms, whole });
        let mut rest = task::steps(self.design.effects());
        let step = rest.pop().unwrap_or(Step::Complete);
        let worker = &mut self.workers[index];
        worker.tasks += 1;
        let number = worker.tasks;
        worker.task = Some(Task {
            number,
            job: grant.job.id,
            pair: grant.pair,
            keeper,
            beats: std::collections::BTreeMap::new(),
            pauses: Vec::new(),
            step,
            stage: Stage::Ready,
            rest,
            left_ms: render_ms,
            frozen: false,
            waits_for_thaw: false,
            content,
            rendering,
            tries: 0,
        });
        self.after(index, 1, WorkerEvent::Instruction(number));
        self.tick_later(index);
    }

    /// The task is over, however it ended: the next one.
    pub(super) fn drop_task(&mut self, index: usize, why: &str) {
        let worker = &mut self.workers[index];
        let Some(task) = worker.task.take() else { return };
        let name = worker.name();
        let (job, token) = (task.job, task.pair.token);
        self.trace.tell(self.now, &name, format_args!("{why}: {job}, token {token}"));
        self.after(index, 5, WorkerEvent::Seek);
    }
}
