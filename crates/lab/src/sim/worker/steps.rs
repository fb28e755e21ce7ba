//! The work thread: step after step, and between any two instructions anything may happen to it.

use palisade_core::Refusal;
use palisade_core::job::{CloseReason, Failure as Report, FailureKind};
use palisade_core::transition::Completed;
use palisade_store::{
    Failure,
    command::{Answer, BeginBlob, BlobPlace, Command, Complete, Fail, FinishBlob, Pin, Release},
};

use crate::{
    designs::Effects,
    linear::{Asked, Told},
    sim::{
        network::{Address, Body, Message},
        outside::{Effect, Kind, Receipt, Stamp},
        world::World,
    },
};

use super::{Stage, Step, Task, WorkerEvent, task::manifest_of};

/// How long a call waits for its answer before it is asked again, in ms.
const CALL_PATIENCE_MS: u64 = 1_500;
/// How often the object store may fail before the attempt is reported as failed.
const UPLOAD_TRIES_MAX: u32 = 6;

impl World {
    /// The next instruction of the work thread.
    pub(super) fn instruction(&mut self, index: usize, number: u64) {
        if !self.is_at(index, number) {
            return;
        }
        if !self.healed && self.dice.per_mille(self.plan.crash) {
            self.crash_worker(index);
            return;
        }
        if !self.healed && self.dice.per_mille(self.plan.pause) {
            let ms = self.dice.between(50, self.plan.pause_ms);
            self.pause(index, ms);
            self.after(index, 0, WorkerEvent::Instruction(number));
            return;
        }
        let Some(task) = &self.workers[index].task else { return };
        match (task.step, task.stage) {
            (Step::Render, _) => self.render(index),
            (_, Stage::Ready) => self.check(index),
            (_, Stage::Checked) => self.send_step(index),
            // A call is under way; its answer goes on.
            (_, Stage::Waiting(_)) => {}
        }
    }

    fn is_at(&self, index: usize, number: u64) -> bool {
        self.workers[index].task.as_ref().is_some_and(|task| task.number == number)
    }

    /// Renders a piece. The children share the host's fate, and stop while the keeper doubts.
    fn render(&mut self, index: usize) {
        let piece_ms = self.plan.ttl_ms / 6;
        let fails = !self.healed && self.dice.per_mille(self.plan.render_fault / 8);
        let leaves = !self.healed && self.dice.per_mille(self.plan.hand_back / 8);
        let Some(task) = &mut self.workers[index].task else { return };
        let number = task.number;
        if task.frozen {
            task.waits_for_thaw = true;
            return;
        }
        if (fails || leaves) && task.left_ms > 0 {
            self.go_to(index, if fails { Step::Fail } else { Step::Release });
            return;
        }
        if task.stage == Stage::Ready && task.left_ms > 0 {
            let piece_ms = piece_ms.min(task.left_ms);
            task.left_ms -= piece_ms;
            self.tally.renderings[task.rendering].spent_ms += piece_ms;
            self.after(index, piece_ms, WorkerEvent::Instruction(number));
            return;
        }
        self.tally.renderings[task.rendering].whole = true;
        self.next_step(index);
    }

    /// Every effect asks the keeper first, where there is one.
    fn check(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        let now = worker.clock(self.now);
        let Some(task) = &mut worker.task else { return };
        let number = task.number;
        let may = match (&mut task.keeper, task.step) {
            (None, _) => true,
            (Some(keeper), Step::Complete | Step::Fail | Step::Release) => keeper.completing(now),
            (Some(keeper), _) => keeper.may_act(now),
        };
        if may {
            task.stage = Stage::Checked;
        }
        let wait_ms = if may { self.dice.below(3) } else { 200 };
        self.after(index, wait_ms, WorkerEvent::Instruction(number));
    }

    fn send_step(&mut self, index: usize) {
        let call = self.new_call();
        let Some(task) = &mut self.workers[index].task else { return };
        task.stage = Stage::Waiting(call);
        let (number, job, token) = (task.number, task.job, task.pair.token);
        match task.step {
            Step::Complete => self.tally.reported(job, call, Asked::Complete(token), self.now),
            Step::Fail | Step::Release => {
                self.tally.reported(job, call, Asked::GiveBack(token), self.now);
            }
            _ => {}
        }
        self.send_call(index, call);
        self.after(index, CALL_PATIENCE_MS, WorkerEvent::CallLate(number, call));
    }

    fn send_call(&mut self, index: usize, call: u64) {
        let chance = self.dice.draw();
        let Some(task) = &self.workers[index].task else { return };
        let from = Address::Worker(index);
        let (job, pair, digest) = (task.job, task.pair, task.content);
        match task.step {
            Step::Raise(kind) => self.send_effect(index, call, kind, true),
            Step::Effect(kind) => self.send_effect(index, call, kind, false),
            Step::Upload(generation) => {
                let body = Body::Put(digest, generation);
                self.send(Message { from, to: Address::Blobs, call, body });
            }
            Step::BeginBlob => {
                let begin = BeginBlob { digest, pin: Pin::Attempt(job, pair) };
                self.command(from, call, Command::BeginBlob(begin));
            }
            Step::FinishBlob(generation) => {
                let finish = FinishBlob { digest, generation, size_bytes: 1 };
                self.command(from, call, Command::FinishBlob(finish));
            }
            Step::Complete => {
                let complete = Complete { job, pair, manifest: manifest_of(digest) };
                self.command(from, call, Command::Complete(complete));
            }
            Step::Fail => {
                let failure = Report {
                    reason: "tool_failed".to_owned(),
                    message: "the renderer ended with status 1".to_owned(),
                    kind: FailureKind::Retryable,
                };
                self.command(from, call, Command::Fail(Fail { job, pair, failure, chance }));
            }
            Step::Release => self.command(from, call, Command::Release(Release { job, pair })),
            Step::Render => {}
        }
    }

    fn send_effect(&mut self, index: usize, call: u64, kind: Kind, raise: bool) {
        let Some(task) = &self.workers[index].task else { return };
        let stamp = match self.design.effects() {
            Effects::Bare => Stamp::Bare(task.pair),
            Effects::Fenced | Effects::Projected => Stamp::Fenced(task.pair),
        };
        let (job, content) = (task.job, task.content);
        let effect = Effect { kind, job, target: job.to_string(), content, stamp, raise };
        let body = Body::Effect(Box::new(effect));
        let (from, to) = (Address::Worker(index), Address::Outside);
        self.send(Message { from, to, call, body });
    }

    /// A call was not answered: the same again, after asking the keeper again.
    pub(super) fn call_late(&mut self, index: usize, number: u64, call: u64) {
        if self.waiting(index, call).is_none() {
            return;
        }
        let worker = &self.workers[index];
        let now = worker.clock(self.now);
        let may = worker.task.as_ref().and_then(|task| task.keeper.as_ref());
        if may.is_none_or(|keeper| keeper.may_act(now)) {
            self.send_call(index, call);
        }
        self.after(index, CALL_PATIENCE_MS, WorkerEvent::CallLate(number, call));
    }

    /// The task that waits for this call.
    fn waiting(&mut self, index: usize, call: u64) -> Option<&mut Task> {
        let task = self.workers[index].task.as_mut()?;
        (task.stage == Stage::Waiting(call)).then_some(task)
    }

    /// The server answered a call.
    pub(super) fn call_answered(
        &mut self,
        index: usize,
        call: u64,
        answer: Result<Answer, Failure>,
    ) {
        if let Ok(Answer::Heartbeat(beats)) = &answer
            && self.beat_answered(index, call, beats)
        {
            return;
        }
        let Some(task) = self.waiting(index, call) else { return };
        let step = task.step;
        if let Some(told) = told(step, &answer) {
            self.tally.told(call, told, self.now);
        }
        if let Err(Failure::Refused(Refusal::StaleToken { reason, .. })) = &answer
            && matches!(step, Step::Complete | Step::Fail | Step::Release)
            && *reason == own_reason(step)
        {
            self.tally.corrupt.push(format!("a worker is refused what it did itself: {step:?}"));
        }
        match (step, answer) {
            (Step::BeginBlob, Ok(Answer::BeginBlob(place))) => self.place_known(index, place),
            (Step::FinishBlob(_), Ok(Answer::FinishBlob(_))) => self.next_step(index),
            (Step::Complete, Ok(Answer::Complete(completed))) => {
                self.completed(index, &completed);
            }
            (Step::Fail | Step::Release, Ok(_)) => self.drop_task(index, "gives up"),
            (Step::FinishBlob(_), Err(Failure::Refused(Refusal::StaleGeneration { .. })))
            | (Step::Complete, Err(Failure::Refused(Refusal::MissingBlob { .. }))) => {
                self.bring_again(index);
            }
            (_, Err(Failure::Refused(refusal))) => {
                let why = format!("is refused ({})", refusal.code());
                self.drop_task(index, &why);
            }
            // Unavailable, unknown, or the answer to something else: it is asked again.
            _ => {}
        }
    }

    /// The blob has to be brought once more; then the commit goes on.
    fn bring_again(&mut self, index: usize) {
        if let Some(task) = &mut self.workers[index].task {
            task.rest.push(Step::Complete);
        }
        self.go_to(index, Step::BeginBlob);
    }

    fn place_known(&mut self, index: usize, place: BlobPlace) {
        if place.present {
            self.next_step(index);
            return;
        }
        if let Some(task) = &mut self.workers[index].task {
            task.rest.push(Step::FinishBlob(place.generation));
        }
        self.go_to(index, Step::Upload(place.generation));
    }

    fn completed(&mut self, index: usize, completed: &Completed) {
        let Some(task) = &self.workers[index].task else { return };
        let told = &completed.completion;
        let content = told.manifest.outputs[0].digest;
        self.tally.completed.push((task.job, task.pair, told.token, content));
        self.tally.orphaned.remove(&task.job);
        self.drop_task(index, "completes");
    }

    /// The outside answered.
    pub(super) fn effect_answered(&mut self, index: usize, call: u64, receipt: Receipt) {
        if self.waiting(index, call).is_none() {
            return;
        }
        match receipt {
            Receipt::Done => self.next_step(index),
            Receipt::Stale => self.drop_task(index, "is refused by the outside (stale token)"),
            // It is asked again.
            Receipt::NotNow => {}
        }
    }

    /// The object store answered.
    pub(super) fn put_answered(&mut self, index: usize, call: u64, done: bool) {
        let Some(task) = self.waiting(index, call) else { return };
        if done {
            self.next_step(index);
            return;
        }
        task.tries += 1;
        if task.tries >= UPLOAD_TRIES_MAX {
            self.go_to(index, Step::Fail);
        } else {
            task.stage = Stage::Ready;
            let number = task.number;
            self.after(index, 300, WorkerEvent::Instruction(number));
        }
    }

    fn next_step(&mut self, index: usize) {
        let Some(task) = &mut self.workers[index].task else { return };
        let next = task.rest.pop().unwrap_or(Step::Complete);
        self.go_to(index, next);
    }

    fn go_to(&mut self, index: usize, step: Step) {
        let wait_ms = self.dice.below(3);
        let Some(task) = &mut self.workers[index].task else { return };
        task.step = step;
        task.stage = Stage::Ready;
        let number = task.number;
        self.after(index, wait_ms, WorkerEvent::Instruction(number));
    }
}

/// What this very step closes an attempt for.
fn own_reason(step: Step) -> CloseReason {
    match step {
        Step::Fail => CloseReason::Failed,
        Step::Release => CloseReason::Released,
        _ => CloseReason::Completed,
    }
}

/// What a report was told for good. None: nothing, or that it is to be sent again.
fn told(step: Step, answer: &Result<Answer, Failure>) -> Option<Told> {
    match (step, answer) {
        (Step::Complete, Ok(Answer::Complete(it))) => Some(Told::Completed(it.completion.token)),
        (Step::Fail, Ok(Answer::Fail(_))) | (Step::Release, Ok(Answer::Release(_))) => {
            Some(Told::GivenBack)
        }
        (
            Step::Complete | Step::Fail | Step::Release,
            Err(Failure::Refused(Refusal::StaleToken { .. } | Refusal::AlreadyComplete { .. })),
        ) => Some(Told::Stale),
        _ => None,
    }
}
