//! One batch: decide everything, commit once, answer. Where it can die is between the three.

use palisade_store::{
    Failure,
    command::{Answer, Command},
};

use crate::{
    designs::Design,
    engine::Lie,
    sabotage::Sabotage,
    sim::{
        network::{Address, Body, Message},
        world::World,
    },
};

use super::Running;

/// What happens to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Fine,
    DiesBefore,
    DiesAfter,
    Unknown { durable: bool },
}

/// Answers on their way: to whom, of which call, what.
type Replies = Vec<(Address, u64, Result<Answer, Failure>)>;

impl World {
    /// Takes what is waiting.
    pub(super) fn turn(&mut self) {
        self.server.turn_is_due = false;
        let batch = std::mem::take(&mut self.server.inbox);
        let fate = self.draw_fate();
        if fate == Fate::DiesBefore && self.server.engine.commits_by_itself() {
            self.die_within(batch);
            return;
        }
        let replies = self.decide(batch);
        if self.broken == Some(Sabotage::AnsweredBeforeCommit) {
            self.answer(replies.clone());
        }
        if self.broken == Some(Sabotage::DeliveredBeforeCommit) {
            self.lease_rows(false);
        }
        match fate {
            Fate::DiesBefore => {
                self.crash_server("before the commit");
                return;
            }
            Fate::DiesAfter => {
                self.server.engine.commit();
                self.crash_server("after the commit");
                return;
            }
            Fate::Unknown { durable } => {
                self.reopen(durable);
                let unknown = |_| Err(Failure::Unknown("the lab says so".to_owned()));
                let replies = replies.into_iter();
                let replies = replies.map(|(to, call, answer)| (to, call, unknown(answer)));
                self.answer(replies.collect());
                return;
            }
            Fate::Fine => self.server.engine.commit(),
        }
        if self.broken != Some(Sabotage::AnsweredBeforeCommit) {
            self.answer(replies);
        }
        self.read_journal();
        self.project();
        let runs = self.server.running == Running::Yes;
        if runs && !self.healed && self.dice.per_mille(self.plan.server_pause) {
            self.pause_server();
        }
    }

    /// A store that commits by itself is killed while it writes.
    fn die_within(&mut self, batch: Vec<Message>) {
        let now = self.server.clock(self.now, self.design);
        let commands: Vec<_> = batch
            .into_iter()
            .filter_map(|message| match message.body {
                Body::Command(command) => Some(*command),
                _ => None,
            })
            .collect();
        let chance = self.dice.draw();
        self.server.engine.die_within(&commands, now, chance);
        self.crash_server("in the middle of a transaction");
    }

    fn draw_fate(&mut self) -> Fate {
        if self.healed {
            return Fate::Fine;
        }
        if self.dice.per_mille(self.plan.server_crash) {
            return if self.dice.per_mille(500) { Fate::DiesBefore } else { Fate::DiesAfter };
        }
        if self.dice.per_mille(self.plan.commit_unknown) {
            return Fate::Unknown { durable: self.dice.per_mille(500) };
        }
        Fate::Fine
    }

    /// An IO error at the commit: the store is opened again, and finds what it finds.
    fn reopen(&mut self, durable: bool) {
        if durable {
            self.server.engine.commit();
        }
        self.trace.tell(self.now, "server", format_args!("does not know whether it committed"));
        self.server.engine.crash();
        let now = self.server.clock(self.now, self.design);
        self.server.engine.start(now);
    }

    fn decide(&mut self, batch: Vec<Message>) -> Replies {
        let now = self.server.clock(self.now, self.design);
        let mut replies = Vec::new();
        let (mut asked, mut honest) = (Vec::new(), Vec::new());
        for message in batch {
            let Body::Command(command) = message.body else { continue };
            let lie = self.lie_about(&command);
            if let Some(answer) = lie.and_then(|lie| self.server.engine.lie(&lie, now)) {
                replies.push((message.from, message.call, Ok(answer)));
            } else {
                asked.push((message.from, message.call));
                honest.push(*command);
            }
        }
        if !self.healed && self.dice.per_mille(self.plan.disk_full) {
            self.server.engine.fill_disk();
        }
        let answers = self.server.engine.apply_all(&honest, now);
        for (answer, (from, call)) in answers.into_iter().zip(asked) {
            if let Err(Failure::Unavailable(why)) = &answer
                && why.contains("corrupt")
            {
                self.tally.corrupt.push(why.clone());
            }
            replies.push((from, call, answer));
        }
        replies
    }

    /// What the lying dispatch layer says instead of the truth, if it lies now.
    fn lie_about(&mut self, command: &Command) -> Option<Lie> {
        if self.design != Design::LyingDispatch {
            return None;
        }
        match command {
            Command::Claim(claim) if self.dice.per_mille(self.plan.lies) => {
                Some(Lie::GrantHeld { claim: claim.clone(), pick: self.dice.draw() })
            }
            Command::Heartbeat(beat) if self.dice.per_mille(self.plan.lies / 2) => {
                Some(Lie::ForgetRenewal(beat.clone()))
            }
            _ => None,
        }
    }

    fn answer(&mut self, replies: Replies) {
        for (to, call, answer) in replies {
            let body = Body::Answer(Box::new(answer));
            self.send(Message { from: Address::Server, to, call, body });
        }
    }

    /// Time passes for the store; what is to be delivered is.
    pub(super) fn tick(&mut self) {
        self.housekeep(&Command::Tick);
        if self.design == Design::LyingDispatch && self.dice.per_mille(self.plan.lies / 30) {
            let now = self.server.clock(self.now, self.design);
            self.server.engine.lie(&Lie::ExpireLiving { pick: self.dice.draw() }, now);
            self.server.engine.commit();
        }
        self.read_journal();
        self.project();
    }

    /// A command of the server's own.
    pub(super) fn housekeep(&mut self, command: &Command) {
        let now = self.server.clock(self.now, self.design);
        // Nobody waits for its answer; a full disk is tried again at the next tick.
        let _ = self.server.engine.apply(command, now);
        self.server.engine.commit();
    }
}
