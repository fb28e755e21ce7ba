//! What people who use a lock can expect of it, by what they asked for and what they were told.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{Number, Timestamp, lease::Pair, lock::Lock};

use super::{ALIVE_MS, NAMES, Request, TTL_MS, WAIT_MS, request_id};

/// Somebody who waits, as an outsider knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Waiting {
    person: usize,
    wants_until: Timestamp,
    alive_until: Timestamp,
}

impl Waiting {
    fn is_there(&self, now: Timestamp) -> bool {
        now < self.wants_until && now < self.alive_until
    }
}

/// What outsiders know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Outsiders {
    /// Who waits, in the order in which they came.
    queue: Vec<Waiting>,
    /// The highest token granted so far.
    highest: Option<Number>,
    /// Whose request was granted, by a grant that is over: it is granted no more.
    over: BTreeSet<usize>,
    /// Up to when each grant was promised.
    promised: BTreeMap<Number, Timestamp>,
}

fn holder(lock: &Lock) -> Option<(Number, usize)> {
    let held = lock.holding.as_ref()?;
    let person = (0..NAMES.len()).find(|person| request_id(*person) == held.request_id)?;
    Some((held.token, person))
}

impl Outsiders {
    /// Somebody's request was taken.
    pub(super) fn asked(&mut self, request: Request, now: Timestamp) {
        match request {
            Request::Acquire(person) if self.is_over(person) => {}
            Request::Acquire(person) => {
                let alive_until = now.plus_ms(ALIVE_MS[person]);
                let known = self.queue.iter_mut().find(|waiting| waiting.person == person);
                if let Some(waiting) = known.filter(|waiting| waiting.is_there(now)) {
                    waiting.alive_until = waiting.alive_until.max(alive_until);
                    return;
                }
                self.queue.retain(|waiting| waiting.person != person);
                let wants_until = now.plus_ms(WAIT_MS[person]);
                self.queue.push(Waiting { person, wants_until, alive_until });
            }
            Request::Leave(person) => self.queue.retain(|waiting| waiting.person != person),
            Request::Renew(..) | Request::Release(..) => {}
        }
    }

    /// A grant or a renewal was answered: nobody else has the lock for a ttl.
    pub(super) fn promised(&mut self, pair: Pair, now: Timestamp) {
        let until = self.promised.entry(pair.token).or_default();
        *until = (*until).max(now.plus_ms(TTL_MS));
    }

    /// Whether somebody's request was granted once, and that grant is over.
    pub(super) fn is_over(&self, person: usize) -> bool {
        self.over.contains(&person)
    }

    /// The tokens that somebody was told of.
    pub(super) fn told(&self) -> impl Iterator<Item = Number> {
        self.promised.keys().copied()
    }

    /// Promises end, and all that are over are alike.
    pub(super) fn time_passes(&mut self, now: Timestamp) {
        for until in self.promised.values_mut().filter(|until| **until <= now) {
            *until = Timestamp::default();
        }
    }

    /// Everybody's connection broke: who still wishes asks again, and takes a place again.
    pub(super) fn restarted(&mut self) {
        self.queue.clear();
    }

    /// One step of the server: the lock before it and after it.
    pub(super) fn saw(
        &mut self,
        before: &Lock,
        after: &Lock,
        request: Option<Request>,
        now: Timestamp,
    ) -> Result<(), String> {
        if after.fence < before.fence {
            return Err("the fence falls".to_owned());
        }
        let (old, new) = (holder(before), holder(after));
        if let Some((token, person)) = old.filter(|old| Some(*old) != new) {
            self.check_end(token, person, request, now)?;
            // Whose waiter had gone was never heard of, and may be asked for again.
            if request != Some(Request::Leave(person)) {
                self.over.insert(person);
            }
            if after.fence <= token {
                return Err(format!("token {token} is over, and the fence is not past it"));
            }
        }
        if let Some((token, person)) = new.filter(|new| Some(*new) != old) {
            self.check_grant(token, person, now)?;
        }
        if let Some((_, person)) = new {
            // Whoever holds it waits no more. Asked again, it is answered what it has.
            self.queue.retain(|waiting| waiting.person != person);
            if request == Some(Request::Leave(person)) {
                return Err(format!("{} is gone, and holds the lock", NAMES[person]));
            }
        }
        let waiting = self.queue.iter().find(|waiting| waiting.is_there(now));
        match waiting {
            Some(waiting) if new.is_none() => {
                Err(format!("the lock is free, and {} waits for it", NAMES[waiting.person]))
            }
            _ => Ok(()),
        }
    }

    /// A holding ends by its holder's release, by its going, or when its time is over.
    fn check_end(
        &self,
        token: Number,
        person: usize,
        request: Option<Request>,
        now: Timestamp,
    ) -> Result<(), String> {
        let promised = self.promised.get(&token).is_some_and(|until| now < *until);
        let by_itself = match request {
            Some(Request::Release(_, pair)) => pair.token == token,
            Some(Request::Leave(gone)) => gone == person,
            _ => false,
        };
        if promised && !by_itself {
            let name = NAMES[person];
            return Err(format!("{name} was promised the lock (token {token}), and loses it"));
        }
        Ok(())
    }

    /// First come, first served; who has gone gets nothing; tokens rise.
    fn check_grant(&mut self, token: Number, person: usize, now: Timestamp) -> Result<(), String> {
        if let Some(last) = self.highest.replace(token).filter(|last| token <= *last) {
            return Err(format!("token {token} is granted after {last}"));
        }
        let first = self.queue.iter().find(|waiting| waiting.is_there(now));
        match first {
            Some(first) if first.person == person => Ok(()),
            Some(first) => {
                let (first, person) = (NAMES[first.person], NAMES[person]);
                Err(format!("{first} came first, and {person} is served"))
            }
            None => Err(format!("{} is granted the lock, and nobody waits", NAMES[person])),
        }
    }

    /// After a tick nobody waits for a lock whose time is over.
    pub(super) fn ticked(&self, lock: &Lock, now: Timestamp) -> Result<(), String> {
        let lapsed = lock.holding.as_ref().is_some_and(|held| !held.lease.is_within(now));
        match self.queue.iter().find(|waiting| waiting.is_there(now)) {
            Some(waiting) if lapsed => {
                let name = NAMES[waiting.person];
                Err(format!("the lock's time is over, it was ticked, and {name} still waits"))
            }
            _ => Ok(()),
        }
    }
}
