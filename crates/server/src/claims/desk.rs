//! Who waits for a job, in which order, and who is woken. Pure: no clock, no tasks.
//!
//! Waiters with the same capabilities form a group: what one of them does not get, none of them
//! gets. A *wake* stands for one job that became claimable; it goes to the waiter that has waited
//! longest, and when that one gets nothing, on to one of another group. So a job wakes at most one
//! waiter a group, however many wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use palisade_core::{Digest, Timestamp};
use tokio::sync::Notify;

/// A set of capabilities, named by its digest.
pub(super) type GroupKey = Digest;
/// A waiter, by its place in the order of arrival.
pub(super) type WaiterId = u64;

/// How long a group goes without looking, in ms. For what no event tells: that a second attempt
/// may join a first, what another server on the same records did.
pub(super) const LOOK_AGAIN_MS: u64 = 5_000;

/// One job became claimable, or may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wake {
    /// Groups that tried already.
    tried: Vec<GroupKey>,
    /// Woken by time: several jobs may have become claimable at once, so one success calls for
    /// another try. Each group has a time of its own, so it is not passed on to other groups.
    by_time: bool,
}

/// What a waiter is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Doing {
    /// Waits.
    Idle,
    /// Waits, and was told to try.
    Called(Wake),
    /// Tries, because of this wake or on its own.
    Trying(Option<Wake>),
    /// Tries, and was told to try again afterwards.
    TryingAgain(Option<Wake>, Wake),
}

#[derive(Debug)]
struct Waiter {
    group: GroupKey,
    notify: Arc<Notify>,
    doing: Doing,
}

#[derive(Debug, Default)]
struct Group {
    /// Those that wait and were not called.
    idle: BTreeSet<WaiterId>,
    /// Those that try, and were not told to try again.
    trying: BTreeSet<WaiterId>,
    /// How many belong to it.
    members: usize,
    /// When something may become claimable by the mere passing of time.
    next_at: Option<Timestamp>,
}

/// The waiters of one server.
#[derive(Debug, Default)]
pub(super) struct Desk {
    arrivals: WaiterId,
    waiters: BTreeMap<WaiterId, Waiter>,
    groups: BTreeMap<GroupKey, Group>,
}

impl Desk {
    /// A waiter comes, and tries at once.
    pub(super) fn enter(&mut self, group: GroupKey) -> (WaiterId, Arc<Notify>) {
        self.arrivals += 1;
        let notify = Arc::new(Notify::new());
        let doing = Doing::Trying(None);
        let waiter = Waiter { group, notify: Arc::clone(&notify), doing };
        self.waiters.insert(self.arrivals, waiter);
        let group = self.groups.entry(group).or_default();
        group.members += 1;
        group.trying.insert(self.arrivals);
        (self.arrivals, notify)
    }

    /// A waiter got nothing. Answers whether it is to try again at once.
    pub(super) fn got_nothing(&mut self, id: WaiterId, next_at: Timestamp) -> bool {
        let Some(key) = self.waiters.get(&id).map(|waiter| waiter.group) else { return false };
        let (tried, again) = match self.change(id, Doing::Idle) {
            Doing::Trying(wake) => (wake, None),
            Doing::TryingAgain(wake, again) => (wake, Some(again)),
            Doing::Idle | Doing::Called(_) => (None, None),
        };
        if let Some(group) = self.groups.get_mut(&key) {
            group.next_at = Some(next_at);
        }
        if let Some(again) = &again {
            self.change(id, Doing::Trying(Some(again.clone())));
        }
        if let Some(mut wake) = tried.filter(|wake| !wake.by_time) {
            wake.tried.push(key);
            self.pass(wake);
        }
        again.is_some()
    }

    /// A waiter that was notified begins to try. Answers whether it was called.
    pub(super) fn begin(&mut self, id: WaiterId) -> bool {
        match self.change(id, Doing::Trying(None)) {
            Doing::Called(wake) => {
                self.change(id, Doing::Trying(Some(wake)));
                true
            }
            other => {
                self.change(id, other);
                false
            }
        }
    }

    /// A waiter goes. What it was called for and did not take is passed on.
    pub(super) fn leave(&mut self, id: WaiterId, granted: bool) {
        let Some(key) = self.waiters.get(&id).map(|waiter| waiter.group) else { return };
        let doing = self.change(id, Doing::Idle);
        self.waiters.remove(&id);
        if let Some(group) = self.groups.get_mut(&key) {
            group.idle.remove(&id);
            group.members -= 1;
            if group.members == 0 {
                self.groups.remove(&key);
            }
        }
        let (taken, untouched) = match doing {
            Doing::Idle => (None, None),
            Doing::Called(wake) => (None, Some(wake)),
            Doing::Trying(wake) => (wake, None),
            Doing::TryingAgain(wake, again) => (wake, Some(again)),
        };
        // By time, one success calls for another try; any other wake was one job, and is used up.
        if let Some(wake) = taken.filter(|wake| !granted || wake.by_time) {
            self.hand_on(key, wake);
        }
        if let Some(wake) = untouched {
            self.hand_on(key, wake);
        }
    }

    /// So many jobs became claimable.
    pub(super) fn wake(&mut self, jobs: usize) {
        for _ in 0..jobs.min(self.waiters.len()) {
            self.pass(Wake::default());
        }
    }

    /// Something may become claimable at this instant, for whomever.
    pub(super) fn expect_at(&mut self, at: Timestamp) {
        for group in self.groups.values_mut() {
            group.next_at = Some(group.next_at.map_or(at, |next_at| next_at.min(at)));
        }
    }

    /// The earliest instant at which a group wants to look.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.groups.values().filter_map(|group| group.next_at).min()
    }

    /// Time has come to here: wakes one of each group whose instant has come.
    pub(super) fn time(&mut self, now: Timestamp) {
        let due = |group: &Group| group.next_at.is_some_and(|at| at <= now);
        let keys: Vec<_> =
            self.groups.iter().filter(|(_, group)| due(group)).map(|(key, _)| *key).collect();
        for key in keys {
            if let Some(group) = self.groups.get_mut(&key) {
                group.next_at = None;
            }
            self.call(key, Wake { tried: Vec::new(), by_time: true });
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    fn hand_on(&mut self, group: GroupKey, wake: Wake) {
        if wake.by_time { self.call(group, wake) } else { self.pass(wake) }
    }

    /// Gives a wake to whoever has waited longest in a group that has not tried: to one that
    /// waits, else to one that is trying, since it may have looked too early.
    fn pass(&mut self, wake: Wake) {
        let untried = self.groups.iter().filter(|(key, _)| !wake.tried.contains(key));
        let first = |ids: &BTreeSet<WaiterId>| ids.first().copied();
        let idle = untried.clone().filter_map(|(_, group)| first(&group.idle)).min();
        let trying = || untried.filter_map(|(_, group)| first(&group.trying)).min();
        if let Some(id) = idle.or_else(trying) {
            self.give(id, wake);
        }
    }

    fn call(&mut self, group: GroupKey, wake: Wake) {
        let Some(group) = self.groups.get(&group) else { return };
        if let Some(id) = group.idle.first().or_else(|| group.trying.first()).copied() {
            self.give(id, wake);
        }
    }

    fn give(&mut self, id: WaiterId, wake: Wake) {
        let Some(waiter) = self.waiters.get(&id) else { return };
        let doing = match waiter.doing.clone() {
            Doing::Idle => Doing::Called(wake),
            Doing::Trying(because) => Doing::TryingAgain(because, wake),
            Doing::Called(_) | Doing::TryingAgain(..) => return,
        };
        waiter.notify.notify_one();
        self.change(id, doing);
    }

    /// Changes what a waiter does, and the sets that follow from it. Answers what it did.
    fn change(&mut self, id: WaiterId, doing: Doing) -> Doing {
        let Some(waiter) = self.waiters.get_mut(&id) else { return doing };
        let before = std::mem::replace(&mut waiter.doing, doing);
        if let Some(group) = self.groups.get_mut(&waiter.group) {
            group.idle.remove(&id);
            group.trying.remove(&id);
            match waiter.doing {
                Doing::Idle => group.idle.insert(id),
                Doing::Trying(_) => group.trying.insert(id),
                Doing::Called(_) | Doing::TryingAgain(..) => false,
            };
        }
        before
    }
}

#[cfg(test)]
mod tests;
