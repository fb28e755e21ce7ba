//! Locks and fenced objects: what holders ask, in order and out of it.

use palisade_core::{
    LeaseId, LockName, Number, ObjectKey,
    lease::Pair,
    lock::{Acquire, Acquired},
    object::Condition,
};

use super::{Answer, Command, Failure, Generator};
use crate::{
    command::{
        AcquireLock, DeleteObject, LeaveLock, PutObject, RaiseObject, ReleaseLock, RenewLock,
    },
    conformance::bench::request,
    query::{Page, Query},
};

const HOLDERS: [&str; 4] = ["alice", "bob", "carol", "dave"];
const LOCKS: [&str; 3] = ["door", "gate/1", "gate/2"];
const KEYS: [&str; 3] = ["report", "report/1", "film"];

/// What earlier answers gave.
#[derive(Default)]
pub(super) struct Known {
    /// Every grant of a lock.
    held: Vec<(LockName, Pair)>,
    /// Versions that objects had.
    versions: Vec<Number>,
}

fn lock_name(text: &str) -> LockName {
    text.parse().expect("a name")
}

fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

impl Generator {
    pub(super) fn effect(&mut self) -> Command {
        match self.below(16) {
            0..=4 => self.acquire(),
            5..=6 => {
                let (name, pair) = self.held_lock();
                Command::RenewLock(RenewLock { name, pair })
            }
            7..=8 => {
                let (name, pair) = self.held_lock();
                Command::ReleaseLock(ReleaseLock { name, pair })
            }
            9 => {
                let (name, request_id) = self.wished();
                let call = self.call();
                Command::LeaveLock(LeaveLock { name, request_id, call })
            }
            10..=12 => self.put(),
            13..=14 => {
                let (key, pair) = (self.key(), self.writer());
                let (op, condition) = (1 + self.below(3), self.condition());
                Command::DeleteObject(DeleteObject { key, pair, op, condition })
            }
            _ => {
                let (key, pair) = (self.key(), self.writer());
                Command::RaiseObject(RaiseObject { key, pair })
            }
        }
    }

    /// A lock and one of few requests for it, so that they are asked again and collide.
    fn wished(&mut self) -> (LockName, palisade_core::RequestId) {
        let name = lock_name(self.pick(&LOCKS).expect("there are some"));
        let id = format!("lock-{}-{}", name.as_str().replace('/', "."), self.below(40));
        (name, request(&id))
    }

    /// One of few, so that a call that leaves is now and then one that asked.
    fn call(&mut self) -> LeaseId {
        LeaseId(u128::from(self.below(3)) + 1_000)
    }

    fn acquire(&mut self) -> Command {
        let (name, request_id) = self.wished();
        let wish = Acquire {
            holder: self.pick(&HOLDERS).expect("there are some").parse().expect("a name"),
            ttl_ms: 500 + self.below(3_000),
            wait_ms: self.below(3) * 2_500,
            request_id,
            lease_id: self.call(),
            alive_ms: 1 + self.below(10_000),
        };
        Command::AcquireLock(AcquireLock { name, wish })
    }

    /// A grant, now and then of another lock, or with a false lease id.
    fn held_lock(&mut self) -> (LockName, Pair) {
        let nobody = Pair { token: Number::new(7).expect("small"), lease_id: LeaseId(7) };
        let known = self.effects.held.clone();
        let (mut name, mut pair) = self.pick(&known).unwrap_or((lock_name(LOCKS[0]), nobody));
        match self.below(10) {
            0 => name = lock_name(self.pick(&LOCKS).expect("there are some")),
            1 => pair.lease_id = LeaseId(1),
            _ => {}
        }
        (name, pair)
    }

    /// Who writes an object: a lock's holder, or a worker.
    fn writer(&mut self) -> Pair {
        if self.below(4) == 0 { self.named().1 } else { self.held_lock().1 }
    }

    fn key(&mut self) -> ObjectKey {
        key(self.pick(&KEYS).expect("there are some"))
    }

    fn condition(&mut self) -> Condition {
        let versions = self.effects.versions.clone();
        match self.below(8) {
            0 => Condition::Exists,
            1 => Condition::Absent,
            2 => self.pick(&versions).map_or(Condition::None, Condition::Version),
            _ => Condition::None,
        }
    }

    fn put(&mut self) -> Command {
        Command::PutObject(PutObject {
            key: self.key(),
            pair: self.writer(),
            op: 1 + self.below(3),
            digest: self.pick(&Self::blobs()).expect("there are some"),
            generation: Number::ZERO,
            media_type: "text/plain".to_owned(),
            condition: self.condition(),
        })
    }

    /// Takes note of an answer, for later commands.
    pub(super) fn learn_effect(&mut self, command: &Command, answer: &Result<Answer, Failure>) {
        match (command, answer) {
            (Command::AcquireLock(asked), Ok(Answer::AcquireLock(Acquired::Granted(held)))) => {
                let pair = Pair { token: held.token, lease_id: held.lease_id };
                self.effects.held.push((asked.name.clone(), pair));
                self.seen.locked += 1;
            }
            (Command::PutObject(_), Ok(Answer::PutObject(written))) => {
                self.effects.versions.push(written.object.last.version);
                self.seen.written += 1;
            }
            _ => {}
        }
    }

    /// What is looked at of locks and objects.
    pub(in super::super) fn views() -> Vec<Query> {
        let page = |prefix: &str| Page { prefix: prefix.to_owned(), after: None, limit: 100 };
        let mut views = vec![Query::Locks(page("")), Query::Locks(page("gate/"))];
        views.extend(LOCKS.map(|name| Query::Lock(lock_name(name))));
        views.extend(KEYS.map(|name| Query::Object(key(name))));
        views.extend([Query::Objects(page("")), Query::Objects(page("report/"))]);
        views
    }
}
