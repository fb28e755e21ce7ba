//! The rules of a lock, case by case, and then all of them at random.

use super::*;
use crate::{lease::Moment, refusal::Refusal, time::granted_span_ms};

mod random;

const TTL_MS: u64 = 10_000;
const PAST_TTL_MS: u64 = granted_span_ms(TTL_MS);

/// A lock with its grants, as a store keeps them.
struct Scene {
    lock: Lock,
    grants: Vec<LockGrant>,
    counter: Number,
    now: u64,
    events: Vec<LockEvent>,
    calls: Vec<(RequestId, LeaseId)>,
}

impl Scene {
    fn new() -> Self {
        let lock = Lock::new("door".parse().unwrap());
        let (grants, events, calls) = (Vec::new(), Vec::new(), Vec::new());
        Self { lock, grants, counter: Number::ZERO, now: 1, events, calls }
    }

    fn moment(&self) -> Moment {
        Moment { at: Timestamp(self.now), life: 1 }
    }

    fn draw(&mut self) -> Number {
        self.counter = self.counter.next();
        self.counter
    }

    fn follow<A>(&mut self, applied: LockApplied<A>) -> A {
        assert!(applied.lock.fence >= self.lock.fence, "a fence never falls");
        for event in &applied.events {
            match event {
                LockEvent::Granted(held) => self.grants.push(LockGrant {
                    name: self.lock.name.clone(),
                    pair: Pair { token: held.token, lease_id: held.lease_id },
                    holder: held.holder.clone(),
                    request_id: held.request_id.clone(),
                    closed: None,
                }),
                LockEvent::Closed { token, how, .. } => {
                    let grant = self.grants.iter_mut().find(|grant| grant.pair.token == *token);
                    let closed = &mut grant.expect("what is closed was granted").closed;
                    assert_eq!(closed.replace((Timestamp(self.now), *how)), None, "closed once");
                }
                LockEvent::Waiting(_) | LockEvent::Left { .. } => {}
            }
        }
        self.events.extend(applied.events);
        self.lock = applied.lock;
        applied.answer
    }

    /// A client's request: another one once its last grant has ended.
    fn request(&self, who: &str) -> RequestId {
        let of_who = self.grants.iter().filter(|grant| grant.holder.as_str() == who);
        let ended = of_who.filter(|grant| grant.closed.is_some()).count();
        format!("request-{who}-{ended}").parse().unwrap()
    }

    /// A call's own random number.
    fn new_call(&mut self, request_id: RequestId) -> LeaseId {
        let call = LeaseId(u128::from(self.counter.get()) << 64 | self.calls.len() as u128);
        self.calls.push((request_id, call));
        call
    }

    fn ask(&mut self, who: &str, wait_ms: u64) -> Acquired {
        let request_id = self.request(who);
        self.ask_as(who, wait_ms, request_id).unwrap()
    }

    fn ask_as(
        &mut self,
        who: &str,
        wait_ms: u64,
        request_id: RequestId,
    ) -> Result<Acquired, Refusal> {
        let earlier = self.grants.iter().rev().find(|grant| grant.request_id == request_id);
        let earlier = earlier.cloned();
        let asked = Acquire {
            holder: who.parse().unwrap(),
            ttl_ms: TTL_MS,
            wait_ms,
            request_id: request_id.clone(),
            lease_id: self.new_call(request_id),
            alive_ms: 30_000,
        };
        let needed = needs_number(&self.lock, &asked, earlier.as_ref(), Timestamp(self.now));
        // What is drawn for nothing must never show.
        let fresh = if needed { self.draw() } else { Number::ZERO };
        let applied = acquire(self.lock.clone(), &asked, earlier.as_ref(), fresh, self.moment())?;
        Ok(self.follow(applied))
    }

    fn granted(&mut self, who: &str) -> Pair {
        match self.ask(who, 0) {
            Acquired::Granted(held) => Pair { token: held.token, lease_id: held.lease_id },
            other => panic!("{who} should hold it, but: {other:?}"),
        }
    }

    fn grant_of(&self, pair: &Pair) -> Option<LockGrant> {
        self.grants.iter().find(|grant| grant.pair.token == pair.token).cloned()
    }

    fn renew(&mut self, pair: &Pair) -> Result<Renewed, Refusal> {
        let grant = self.grant_of(pair);
        let applied = renew(self.lock.clone(), grant.as_ref(), pair, self.moment())?;
        Ok(self.follow(applied))
    }

    fn release(&mut self, pair: &Pair) -> Result<(), Refusal> {
        let (grant, fresh) = (self.grant_of(pair), self.draw());
        let applied = release(self.lock.clone(), grant.as_ref(), pair, fresh, self.moment())?;
        self.follow(applied);
        Ok(())
    }

    /// The newest call of a request goes.
    fn leave(&mut self, who: &str) {
        let request = self.request(who);
        let call = self.calls.iter().rev().find(|(of, _)| *of == request);
        if let Some((_, call)) = call.cloned() {
            self.leave_as(&request, call);
        }
    }

    fn leave_as(&mut self, request: &RequestId, call: LeaseId) {
        let fresh = self.draw();
        let applied = leave(self.lock.clone(), request, call, fresh, self.moment());
        self.follow(applied);
    }

    fn tick(&mut self) -> Option<Timestamp> {
        let fresh = self.draw();
        let applied = tick(self.lock.clone(), fresh, self.moment());
        self.follow(applied)
    }

    fn holder(&self) -> Option<&str> {
        self.lock.holding.as_ref().map(|held| held.holder.as_str())
    }
}

#[test]
fn a_second_asker_is_told_who_holds_it() {
    let mut scene = Scene::new();
    scene.granted("alice");
    let Acquired::Held { holder, deadline } = scene.ask("bob", 0) else { panic!("held") };
    assert_eq!((holder.as_str(), deadline), ("alice", Timestamp(1 + PAST_TTL_MS)));
    assert_eq!((scene.holder(), scene.lock.waiters.len()), (Some("alice"), 0));
    assert_eq!(scene.events.len(), 1, "who would not wait has not waited: {:?}", scene.events);
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    let mut scene = Scene::new();
    let mut held = scene.granted("alice");
    for (index, who) in ["bob", "carol", "dave"].into_iter().enumerate() {
        scene.now += 1;
        let Acquired::Waiting { before, .. } = scene.ask(who, 60_000) else { panic!("waits") };
        assert_eq!(before, index);
    }
    for who in ["bob", "carol", "dave"] {
        scene.now += 10;
        scene.release(&held).unwrap();
        assert_eq!(scene.holder(), Some(who));
        let next = scene.granted(who);
        assert!(next.token > held.token);
        held = next;
    }
}

#[test]
fn a_lost_reply_asked_for_again_gets_the_same_pair_for_a_whole_ttl() {
    let mut scene = Scene::new();
    let first = scene.granted("alice");
    scene.now += 9_000;
    assert_eq!(scene.granted("alice"), first);
    let lease = scene.lock.holding.as_ref().unwrap().lease;
    assert_eq!(lease.deadline, Timestamp(scene.now + PAST_TTL_MS));
}

#[test]
fn a_late_duplicate_of_a_request_whose_grant_has_ended_takes_nothing() {
    let mut scene = Scene::new();
    let first = scene.request("alice");
    let alice = scene.granted("alice");
    scene.release(&alice).unwrap();
    let fence = scene.lock.fence;
    let lost = |reason| Err(Refusal::LeaseLost { fence, reason });
    assert_eq!(scene.ask_as("alice", 0, first.clone()), lost(LockClose::Released));
    assert_eq!(scene.ask_as("alice", 60_000, first), lost(LockClose::Released));
    assert_eq!((scene.holder(), scene.lock.waiters.len()), (None, 0));
    let second = scene.request("alice");
    scene.granted("alice");
    scene.now += PAST_TTL_MS;
    scene.granted("bob");
    let Err(Refusal::LeaseLost { reason, .. }) = scene.ask_as("alice", 60_000, second) else {
        panic!("its grant went to another")
    };
    assert_eq!(reason, LockClose::Superseded);
    assert!(scene.lock.waiters.is_empty(), "it does not queue for a second grant either");
}

#[test]
fn a_request_whose_grant_was_never_heard_of_may_be_asked_again() {
    let mut scene = Scene::new();
    let held = scene.granted("alice");
    let bob = scene.request("bob");
    scene.ask("bob", 60_000);
    scene.release(&held).unwrap();
    scene.leave("bob");
    assert_eq!(scene.holder(), None);
    assert!(matches!(scene.ask_as("bob", 0, bob), Ok(Acquired::Granted(_))));
}

#[test]
fn a_waiter_that_left_gets_nothing_and_the_next_does() {
    let mut scene = Scene::new();
    let held = scene.granted("alice");
    scene.ask("bob", 60_000);
    scene.ask("carol", 60_000);
    scene.leave("bob");
    scene.release(&held).unwrap();
    assert_eq!(scene.holder(), Some("carol"));
}

#[test]
fn a_grant_made_to_a_waiter_that_leaves_is_ended_at_once() {
    let mut scene = Scene::new();
    let held = scene.granted("alice");
    scene.ask("bob", 60_000);
    scene.ask("carol", 60_000);
    scene.release(&held).unwrap();
    let token = scene.lock.holding.as_ref().unwrap().token;
    scene.leave("bob");
    assert_eq!(scene.holder(), Some("carol"));
    let closed = scene.grants.iter().find(|grant| grant.pair.token == token).unwrap().closed;
    assert_eq!(closed.unwrap().1, LockClose::Abandoned);
}

#[test]
fn a_place_is_given_up_when_the_last_call_of_its_request_has_gone() {
    let mut scene = Scene::new();
    let held = scene.granted("alice");
    let bob = scene.request("bob");
    scene.ask("bob", 60_000);
    scene.ask("carol", 60_000);
    let first = scene.calls.iter().find(|(of, _)| *of == bob).unwrap().1;
    scene.ask("bob", 60_000);
    // The server that was asked first notices at last that nobody listens there.
    scene.leave_as(&bob, first);
    scene.leave_as(&bob, first);
    scene.release(&held).unwrap();
    assert_eq!(scene.holder(), Some("bob"));
    scene.leave("bob");
    assert_eq!(scene.holder(), Some("carol"), "nobody listens any more");
}

#[test]
fn a_grant_that_was_handed_over_outlives_every_other_call_of_its_request() {
    let mut scene = Scene::new();
    let pair = scene.granted("bob");
    let bob = scene.request("bob");
    let handed = scene.calls[0].1;
    // However many late duplicates there are, each hangs up.
    for _ in 0..40 {
        scene.ask("bob", 60_000);
    }
    let calls: Vec<_> = scene.calls.iter().map(|(_, call)| *call).collect();
    for call in calls.into_iter().filter(|call| *call != handed) {
        scene.leave_as(&bob, call);
    }
    assert_eq!(scene.holder(), Some("bob"));
    assert!(scene.renew(&pair).is_ok());
}

#[test]
fn a_waiter_whose_wish_has_expired_gets_nothing() {
    let mut scene = Scene::new();
    let held = scene.granted("alice");
    scene.ask("bob", 1_000);
    scene.ask("carol", 60_000);
    scene.now += 1_000;
    scene.release(&held).unwrap();
    assert_eq!(scene.holder(), Some("carol"));
}

#[test]
fn a_waiter_that_is_not_heard_of_any_more_gets_nothing() {
    let mut scene = Scene::new();
    let held = scene.granted("alice");
    scene.ask("bob", 120_000);
    scene.ask("carol", 120_000);
    for _ in 0..3 {
        scene.now += 9_800;
        scene.renew(&held).unwrap();
    }
    scene.ask("carol", 90_000);
    scene.now += 900;
    scene.release(&held).unwrap();
    assert_eq!(scene.holder(), Some("carol"));
}

#[test]
fn time_gives_a_lapsed_lock_to_who_waits_and_to_nobody_else() {
    let mut scene = Scene::new();
    let alice = scene.granted("alice");
    scene.now += PAST_TTL_MS;
    assert_eq!(scene.tick(), None);
    assert_eq!(scene.holder(), Some("alice"), "nobody waits, so nobody takes it");
    scene.renew(&alice).unwrap();
    scene.ask("bob", 60_000);
    assert_eq!(scene.tick(), Some(Timestamp(scene.now + PAST_TTL_MS)));
    scene.now += PAST_TTL_MS;
    // Bob was not heard of meanwhile, but that is not long enough to count as gone.
    scene.tick();
    assert_eq!(scene.holder(), Some("bob"));
    let fence = scene.lock.fence;
    let lost = Refusal::LeaseLost { fence, reason: LockClose::Superseded };
    assert_eq!(scene.renew(&alice), Err(lost.clone()));
    assert_eq!(scene.release(&alice), Err(lost));
}

#[test]
fn a_renewal_after_expiry_succeeds_while_nobody_has_taken_the_lock() {
    let mut scene = Scene::new();
    let alice = scene.granted("alice");
    scene.now += PAST_TTL_MS + 5;
    scene.renew(&alice).unwrap();
    assert!(matches!(scene.ask("bob", 0), Acquired::Held { .. }));
}

#[test]
fn a_strangers_pair_is_unknown_and_a_release_repeated_is_answered_again() {
    let mut scene = Scene::new();
    let alice = scene.granted("alice");
    let stranger = Pair { lease_id: LeaseId(99), ..alice };
    let unknown = |result| matches!(result, Err(Refusal::UnknownToken { .. }));
    assert!(unknown(scene.release(&stranger)));
    assert!(scene.renew(&stranger).is_err());
    scene.release(&alice).unwrap();
    let released = scene.lock.clone();
    scene.release(&alice).unwrap();
    assert_eq!(scene.lock, released);
    assert_eq!(released.fence, alice.token.next(), "a release raises the fence past the token");
    let lost = Refusal::LeaseLost { fence: released.fence, reason: LockClose::Released };
    assert_eq!(scene.renew(&alice), Err(lost));
    let again = scene.granted("alice");
    assert!(again.token > alice.token, "the same holder's next grant is another");
    scene.release(&alice).unwrap();
    assert_eq!(scene.holder(), Some("alice"), "a late repeat releases nothing of the next grant");
}
