//! Locks and fenced objects: what must hold of their records.

use palisade_core::{
    JobId, Number,
    lock::{Lock, LockGrant},
    object::{Content, Object},
};

use super::{Checker, Rule};

/// What is known of a lock while its grants are looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownLock {
    fence: Number,
    holding: Option<Number>,
    open: Option<Number>,
}

impl Checker {
    /// Takes a lock's record. All locks come before all grants.
    pub fn lock(&mut self, lock: &Lock) {
        let record = || format!("lock {}", lock.name);
        let holding = lock.holding.as_ref().map(|held| held.token);
        if let Some(token) = holding.filter(|token| *token != lock.fence) {
            let text = format!("token {token} holds it, but its fence stands at {}", lock.fence);
            self.say(Rule::Locks, record(), text);
        }
        self.check_drawn(lock.fence, &record());
        let known = KnownLock { fence: lock.fence, holding, open: None };
        self.locks.insert(lock.name.clone(), known);
    }

    /// Takes what is kept of a lock's grant. Those of a lock come by rising token.
    pub fn lock_grant(&mut self, grant: &LockGrant) {
        let token = grant.pair.token;
        let record = format!("lock {}", grant.name);
        self.check_drawn(token, &record);
        let Some(known) = self.locks.get_mut(&grant.name) else {
            let text = format!("token {token} was granted for it, but there is no such lock");
            self.say(Rule::Locks, record, text);
            return;
        };
        let fence = known.fence;
        let twice = if grant.closed.is_none() { known.open.replace(token) } else { None };
        if let Some(other) = twice {
            let text = format!("token {token} is open, and so is token {other}");
            self.say(Rule::Locks, record, text);
        } else if token > fence || (grant.closed.is_some() && token == fence) {
            let text = format!("its fence stands at {fence}, not past its grant {token}");
            self.say(Rule::Fence, record, text);
        }
    }

    /// Takes a fenced object's record, a tombstone too. All jobs come before all objects.
    pub fn object(&mut self, object: &Object) {
        let record = || format!("object {}", object.key);
        let last = &object.last;
        if last.number > object.fence {
            let text = format!(
                "its fence stands at {}, below {}, which wrote it",
                object.fence, last.number
            );
            self.say(Rule::Fence, record(), text);
        }
        for number in [object.fence, last.number, last.version] {
            self.check_drawn(number, &record());
        }
        if let Some(fence) = self.object_fences.get(&object.key).filter(|at| **at > object.fence) {
            let text = format!("its fence stands at {}, and was {fence} before", object.fence);
            self.say(Rule::Fence, record(), text);
        }
        if let Some(Content::Manifest { job, token }) = &object.content {
            self.check_published(*job, *token, &record());
        }
        self.check_name(object);
    }

    /// A published folder is one job's completion.
    fn check_published(&mut self, job: JobId, token: Number, record: &str) {
        let completed_by = self.outcomes.get(&job).copied().flatten();
        if completed_by != Some(token) {
            let is = completed_by.map_or("not complete".to_owned(), |by| format!("{by}'s work"));
            let text = format!("it points at what token {token} made of {job}, which is {is}");
            self.say(Rule::Objects, record.to_owned(), text);
        }
    }

    /// Ends the looking at locks: what a lock says of its holder, its grants say too.
    pub(super) fn finish_locks(&mut self) {
        for (name, known) in std::mem::take(&mut self.locks) {
            if known.open == known.holding {
                continue;
            }
            let named = |token: Option<Number>| token.map_or("none".to_owned(), |t| t.to_string());
            let text = format!(
                "it says that its open grant is {}; of its grants, open is {}",
                named(known.holding),
                named(known.open)
            );
            self.say(Rule::Locks, format!("lock {name}"), text);
        }
    }

    /// A number in use was drawn from the counter.
    pub(super) fn check_drawn(&mut self, number: Number, record: &str) {
        if number > self.counter {
            let text = format!("{number} is in use, but the counter stands at {}", self.counter);
            self.say(Rule::RisingTokens, record.to_owned(), text);
        }
    }
}
