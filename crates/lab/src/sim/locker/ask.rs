//! What somebody asks at each step of its turn, and what it makes of the answer.

use palisade_core::{
    Digest, LockName, ObjectKey, Refusal, RequestId, lease::Pair, lock::Acquire, lock::Acquired,
    object::Condition, time::trusted_span_ms,
};
use palisade_store::{
    Failure,
    command::{AcquireLock, Answer, BeginBlob, Command, FinishBlob, Pin, PutObject, ReleaseLock},
};

use crate::sim::{network::Address, world::World};

use super::{FOR_EVER, PATIENCE_MS, Put, Stage, Turn};

/// The lock.
pub(crate) fn lock_name() -> LockName {
    "studio".parse().expect("a fine name")
}

/// The object that is written under it.
pub(crate) fn object_key() -> ObjectKey {
    "latest-cut".parse().expect("a fine name")
}

impl World {
    /// Asks what its step needs, for the first time or again.
    pub(super) fn locker_asks(&mut self, index: usize) {
        let fresh = self.new_call();
        let person = &mut self.lockers.people[index];
        if person.stage == Stage::Acquiring && person.call.is_none() {
            person.lease_id = person.new_lease_id();
            let what = format!("{} {} {}", person.name(), person.turn, person.lives);
            person.content = Digest::of(what.as_bytes());
        }
        if person.stage == Stage::Releasing {
            self.relies_no_more(index);
        }
        let person = &mut self.lockers.people[index];
        // Asked again, it is the same call: whichever answer comes first counts.
        let (call, _) = *person.call.get_or_insert((fresh, self.now));
        let Some(command) = self.locker_command(index) else { return };
        self.command(Address::Locker, call, command);
    }

    fn locker_command(&self, index: usize) -> Option<Command> {
        let person = &self.lockers.people[index];
        let digest = person.content;
        let pair = person.pair;
        Some(match person.stage {
            Stage::Acquiring => {
                let request = format!("l{index}-{}-{}", person.turn, person.lives);
                let request_id: RequestId = request.parse().expect("a fine id");
                let holder = person.name().parse().expect("a fine name");
                let (ttl_ms, lease_id) = (self.plan.ttl_ms, person.lease_id);
                let (wait_ms, alive_ms) = (60_000, PATIENCE_MS * 3);
                let wish = Acquire { holder, ttl_ms, wait_ms, request_id, lease_id, alive_ms };
                Command::AcquireLock(AcquireLock { name: lock_name(), wish })
            }
            Stage::Begin => Command::BeginBlob(BeginBlob { digest, pin: Pin::Until(FOR_EVER) }),
            Stage::Finish(generation) => {
                Command::FinishBlob(FinishBlob { digest, generation, size_bytes: 1 })
            }
            Stage::Put(generation, op) => Command::PutObject(PutObject {
                key: object_key(),
                pair: pair?,
                op,
                digest,
                generation,
                media_type: "video/mp4".to_owned(),
                condition: Condition::None,
            }),
            Stage::Releasing => {
                Command::ReleaseLock(ReleaseLock { name: lock_name(), pair: pair? })
            }
            Stage::Over => return None,
        })
    }

    /// Makes of an answer what it says.
    pub(super) fn locker_learns(
        &mut self,
        index: usize,
        stage: Stage,
        answer: Result<Answer, Failure>,
    ) {
        match (stage, answer) {
            (Stage::Acquiring, Ok(Answer::AcquireLock(Acquired::Granted(held)))) => {
                let pair = Pair { token: held.token, lease_id: held.lease_id };
                self.locker_granted(index, pair);
            }
            (Stage::Begin, Ok(Answer::BeginBlob(place))) => {
                self.blobs.insert((place.digest, place.generation));
                self.locker_goes_to(index, Stage::Finish(place.generation));
            }
            (Stage::Finish(generation), Ok(_)) => {
                self.locker_goes_to(index, Stage::Put(generation, 1));
            }
            (Stage::Put(generation, op), Ok(Answer::PutObject(_))) => {
                self.locker_put(index, op);
                let next = if op == 1 { Stage::Put(generation, 2) } else { Stage::Releasing };
                self.locker_goes_to(index, next);
            }
            (Stage::Releasing, Ok(_)) => {
                let name = self.lockers.people[index].name();
                self.trace.tell(self.now, &name, format_args!("has given the lock back"));
                self.locker_ends(index);
            }
            (_, Err(Failure::Refused(refusal))) => self.locker_refused(index, stage, &refusal),
            // It waits, or the answer was no answer: it asks again.
            _ => {}
        }
    }

    fn locker_granted(&mut self, index: usize, pair: Pair) {
        let now = self.now;
        let trusted_ms = trusted_span_ms(self.plan.ttl_ms);
        let person = &mut self.lockers.people[index];
        let asked_at = person.call.map_or(now, |(_, since)| since);
        person.pair = Some(pair);
        person.trusts_until = asked_at + trusted_ms;
        let trusted = (now, person.trusts_until);
        let name = person.name();
        let token = pair.token;
        self.lockers.turns.push(Turn { pair, asked_at, heard_at: now, who: index, trusted });
        self.trace.tell(now, &name, format_args!("is granted the lock under token {token}"));
        self.locker_goes_to(index, Stage::Begin);
    }

    fn locker_put(&mut self, index: usize, op: u64) {
        let person = &self.lockers.people[index];
        let Some(pair) = person.pair else { return };
        let asked_at = person.call.map_or(self.now, |(_, since)| since);
        let stamp = (pair.token, op);
        self.lockers.puts.push(Put { stamp, asked_at, told_at: self.now });
    }

    fn locker_refused(&mut self, index: usize, stage: Stage, refusal: &Refusal) {
        let person = &mut self.lockers.people[index];
        let code = refusal.code();
        let lost = matches!(refusal, Refusal::LeaseLost { .. } | Refusal::StaleWrite { .. });
        if !lost {
            let token = person.pair.map(|pair| pair.token);
            self.lockers.wrong.push(format!("token {token:?} is refused at {stage:?}: {refusal}"));
        } else if self.now < person.trusts_until {
            let ms = person.trusts_until - self.now;
            self.lockers.wrong.push(format!("a holder loses the lock {ms} ms early: {refusal}"));
        }
        let name = person.name();
        self.trace.tell(self.now, &name, format_args!("is refused ({code})"));
        self.locker_ends(index);
    }

    fn locker_ends(&mut self, index: usize) {
        self.relies_no_more(index);
        self.lockers.people[index].end_turn();
    }

    /// From now on it does not count on the lock: it asked to be rid of it, or it is dead.
    pub(super) fn relies_no_more(&mut self, index: usize) {
        let pair = self.lockers.people[index].pair;
        let mut turns = self.lockers.turns.iter_mut().rev();
        if let Some(turn) = turns.find(|turn| Some(turn.pair) == pair) {
            turn.trusted.1 = turn.trusted.1.min(self.now);
        }
    }

    fn locker_goes_to(&mut self, index: usize, stage: Stage) {
        let person = &mut self.lockers.people[index];
        person.stage = stage;
        person.call = None;
        let wait_ms = person.thinks_ms(self.plan.think_ms);
        self.locker_wakes_after(index, wait_ms);
    }
}
