//! Lease locks: granted, waited for, lost, released.

use palisade_core::{
    LeaseId, LockName,
    lease::Pair,
    lock::{Acquire, Acquired, Lock, LockClose},
    refusal::Refusal,
};

use crate::{
    Failure, Store, StoreExt,
    command::{AcquireLock, LeaveLock, ReleaseLock, RenewLock},
    query::{Page, Query, View},
};

use super::bench::{Bench, PAST_TTL_MS, TTL_MS};

const HOUR_MS: u64 = 3_600_000;

/// A lock's name.
pub(crate) fn name(text: &str) -> LockName {
    text.parse().expect("a name")
}

/// A wish for a lock; the same for the same holder.
pub(crate) fn wish<S: Store>(bench: &Bench<S>, lock: &str, who: &str, wait_ms: u64) -> AcquireLock {
    let wish = Acquire {
        holder: who.parse().expect("a name"),
        ttl_ms: TTL_MS,
        wait_ms,
        request_id: format!("{lock}-{who}").replace('/', ".").parse().expect("an id"),
        lease_id: LeaseId(u128::from(bench.fresh())),
        alive_ms: HOUR_MS,
    };
    AcquireLock { name: name(lock), wish }
}

/// A wish of the same holder that it has not had before.
pub(crate) async fn hold_anew<S: Store>(bench: &Bench<S>, lock: &str, who: &str) -> Pair {
    let mut anew = wish(bench, lock, who, 0);
    anew.wish.request_id = format!("anew-{}", bench.fresh()).parse().expect("an id");
    match bench.store.run(anew).await {
        Ok(Acquired::Granted(held)) => Pair { token: held.token, lease_id: held.lease_id },
        other => panic!("{who} should be granted {lock}, but: {other:?}"),
    }
}

async fn ask<S: Store>(bench: &Bench<S>, who: &str, wait_ms: u64) -> Acquired {
    bench.store.run(wish(bench, "door", who, wait_ms)).await.expect("it is answered")
}

/// A call that waits for the door. Answers how this very call leaves again.
pub(crate) async fn wait_for_door<S: Store>(bench: &Bench<S>, who: &str) -> LeaveLock {
    let AcquireLock { name, wish } = wish(bench, "door", who, HOUR_MS);
    let (request_id, call) = (wish.request_id.clone(), wish.lease_id);
    let came = bench.store.run(AcquireLock { name: name.clone(), wish }).await;
    assert!(matches!(came, Ok(Acquired::Waiting { .. })), "{who} waits, but: {came:?}");
    LeaveLock { name, request_id, call }
}

/// Acquires a lock that is free, or asks again for one that is held already.
pub(crate) async fn hold<S: Store>(bench: &Bench<S>, lock: &str, who: &str) -> Pair {
    match bench.store.run(wish(bench, lock, who, 0)).await {
        Ok(Acquired::Granted(held)) => Pair { token: held.token, lease_id: held.lease_id },
        other => panic!("{who} should be granted {lock}, but: {other:?}"),
    }
}

/// Releases a lock.
pub(crate) async fn let_go<S: Store>(bench: &Bench<S>, lock: &str, pair: Pair) {
    bench.store.run(ReleaseLock { name: name(lock), pair }).await.expect("its holder may");
}

async fn lock<S: Store>(bench: &Bench<S>) -> Lock {
    match bench.store.query(Query::Lock(name("door"))).await {
        Ok(View::Lock(Some(lock))) => *lock,
        other => panic!("the lock should be there, but: {other:?}"),
    }
}

/// Who holds the door.
pub(crate) async fn holder<S: Store>(bench: &Bench<S>) -> Option<String> {
    lock(bench).await.holding.map(|held| held.holder.to_string())
}

async fn renew<S: Store>(bench: &Bench<S>, pair: Pair) -> Result<(), Failure> {
    bench.store.run(RenewLock { name: name("door"), pair }).await.map(drop)
}

/// Of two who ask, one holds it and the other is told who does.
pub async fn a_held_lock_is_not_granted_twice<S: Store>(bench: &Bench<S>) {
    let answers = bench
        .store
        .run_all(vec![wish(bench, "door", "alice", 0), wish(bench, "door", "bob", 0)])
        .await;
    let [Ok(Acquired::Granted(held)), Ok(Acquired::Held { holder, .. })] = &answers[..] else {
        panic!("{answers:?}");
    };
    assert_eq!((held.holder.as_str(), holder.as_str()), ("alice", "alice"));
    assert!(lock(bench).await.waiters.is_empty());
}

/// First come, first served; the release grants in its own transaction.
pub async fn waiters_are_served_in_the_order_in_which_they_came<S: Store>(bench: &Bench<S>) {
    let first = hold(bench, "door", "alice").await;
    for (place, who) in ["bob", "carol"].into_iter().enumerate() {
        let Acquired::Waiting { before, .. } = ask(bench, who, HOUR_MS).await else {
            panic!("{who} waits");
        };
        assert_eq!(before, place);
    }
    assert_eq!(lock(bench).await.waiters.len(), 2);
    let_go(bench, "door", first).await;
    assert_eq!(holder(bench).await.as_deref(), Some("bob"));
    let second = hold(bench, "door", "bob").await;
    assert!(second.token > first.token);
    let_go(bench, "door", second).await;
    assert_eq!(holder(bench).await.as_deref(), Some("carol"));
}

/// However many wait.
pub async fn thirty_two_waiters_are_handed_the_lock_in_order<S: Store>(bench: &Bench<S>) {
    let mut held = hold(bench, "door", "w0").await;
    for index in 1..=32 {
        ask(bench, &format!("w{index}"), HOUR_MS).await;
    }
    for index in 1..=32 {
        let_go(bench, "door", held).await;
        let who = format!("w{index}");
        assert_eq!(holder(bench).await.as_deref(), Some(who.as_str()));
        let next = hold(bench, "door", &who).await;
        assert!(next.token > held.token);
        held = next;
    }
}

/// A lost reply strands nothing: the same request gets the same pair.
pub async fn a_lost_reply_asked_again_gets_the_same_pair<S: Store>(bench: &Bench<S>) {
    let first = hold(bench, "door", "alice").await;
    bench.pass_ms(20_000).await;
    assert_eq!(hold(bench, "door", "alice").await, first);
    bench.pass_ms(20_000).await;
    assert!(matches!(ask(bench, "bob", 0).await, Acquired::Held { .. }), "it was renewed");
}

/// Whoever hangs up is not served.
pub async fn a_waiter_that_left_gets_nothing<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    let bob = wait_for_door(bench, "bob").await;
    ask(bench, "carol", HOUR_MS).await;
    bench.store.run(bob).await.expect("answered");
    let_go(bench, "door", held).await;
    assert_eq!(holder(bench).await.as_deref(), Some("carol"));
}

/// A grant that nobody can know of does not hold the others up for a ttl.
pub async fn a_grant_to_a_waiter_that_left_meanwhile_is_ended<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    let bob = wait_for_door(bench, "bob").await;
    ask(bench, "carol", HOUR_MS).await;
    let_go(bench, "door", held).await;
    bench.store.run(bob).await.expect("answered");
    assert_eq!(holder(bench).await.as_deref(), Some("carol"));
}

/// A holder that is silent loses the lock to who waits, without anybody's asking.
pub async fn a_lapsed_lock_goes_to_who_waits_by_time_alone<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    ask(bench, "bob", HOUR_MS).await;
    bench.pass_ms(29_000).await;
    assert_eq!(holder(bench).await.as_deref(), Some("alice"));
    bench.pass_ms(2_000).await;
    assert_eq!(holder(bench).await.as_deref(), Some("bob"));
    let fence = lock(bench).await.fence;
    let lost = Failure::Refused(Refusal::LeaseLost { fence, reason: LockClose::Superseded });
    assert_eq!(renew(bench, alice).await, Err(lost));
}

/// A wish that has expired is not granted any more.
pub async fn a_lapsed_waiter_gets_nothing<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    ask(bench, "bob", 5_000).await;
    bench.pass_ms(5_000).await;
    let_go(bench, "door", held).await;
    assert_eq!(holder(bench).await, None);
    assert!(lock(bench).await.waiters.is_empty());
}

/// Who does not show both halves of the pair releases nothing.
pub async fn a_strangers_release_is_refused_and_leaves_no_trace<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    let pair = Pair { lease_id: LeaseId(7), ..held };
    let before = lock(bench).await;
    let refused = bench.store.run(ReleaseLock { name: name("door"), pair }).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::UnknownToken { .. }))), "{refused:?}");
    assert_eq!(lock(bench).await, before);
}

/// A lapsed deadline takes nothing away by itself.
pub async fn a_renewal_after_expiry_holds_while_nobody_took_it<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    renew(bench, held).await.expect("nobody took it");
    assert!(matches!(ask(bench, "bob", 0).await, Acquired::Held { .. }));
    bench.pass_ms(PAST_TTL_MS).await;
    assert!(matches!(ask(bench, "bob", 0).await, Acquired::Granted(_)));
    assert!(renew(bench, held).await.is_err());
}

/// A release whose reply was lost is repeated safely, and nobody comes back under its token.
pub async fn a_release_is_answered_again_and_raises_the_fence<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    let_go(bench, "door", held).await;
    let after = lock(bench).await;
    assert!(after.fence > held.token && after.holding.is_none());
    let_go(bench, "door", held).await;
    assert_eq!(lock(bench).await, after);
    let again = hold_anew(bench, "door", "alice").await;
    let_go(bench, "door", held).await;
    assert_eq!(lock(bench).await.holding.map(|held| held.token), Some(again.token));
}

/// A pair is of one lock.
pub async fn a_pair_of_another_lock_is_unknown<S: Store>(bench: &Bench<S>) {
    hold(bench, "door", "alice").await;
    let pair = hold(bench, "gate", "alice").await;
    let refused = renew(bench, pair).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::UnknownToken { .. }))), "{refused:?}");
}

/// One counter for all grants, so that tokens of locks and of jobs can be compared.
pub async fn locks_and_jobs_draw_from_one_counter<S: Store>(bench: &Bench<S>) {
    let mut tokens = Vec::new();
    for round in 0..3 {
        tokens.push(hold(bench, &format!("lock-{round}"), "alice").await.token);
        bench.new_job().await;
        tokens.push(bench.grant("bob").await.pair.token);
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

/// Listings go by name and show who holds and how many wait.
pub async fn locks_are_listed_by_prefix_and_pages<S: Store>(bench: &Bench<S>) {
    for lock in ["b/2", "a", "b/1", "b/3", "c"] {
        hold(bench, lock, "alice").await;
    }
    bench.store.run(wish(bench, "b/2", "bob", HOUR_MS)).await.expect("it waits");
    let page = |after: Option<&str>| Page {
        prefix: "b/".to_owned(),
        after: after.map(str::to_owned),
        limit: 2,
    };
    let list = async |page| match bench.store.query(Query::Locks(page)).await {
        Ok(View::Locks(locks)) => locks,
        other => panic!("{other:?}"),
    };
    let first = list(page(None)).await;
    let names: Vec<_> = first.iter().map(|lock| lock.name.as_str()).collect();
    assert_eq!(names, ["b/1", "b/2"]);
    assert_eq!(first[1].waiters.len(), 1);
    let second = list(page(Some("b/2"))).await;
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].name.as_str(), "b/3");
}

/// Who reads the journal learns who held what, but cannot act as a holder.
pub async fn the_journal_tells_of_locks_but_not_their_lease_ids<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    ask(bench, "bob", HOUR_MS).await;
    let_go(bench, "door", held).await;
    let Ok(View::Events(events)) = bench.store.query(Query::Events { after: 0, limit: 100 }).await
    else {
        panic!("the journal can be read");
    };
    let told: Vec<_> =
        events.iter().map(|(_, e)| serde_json::to_value(e).expect("it serialises")).collect();
    let kinds: Vec<_> = told.iter().map(|e| e["event"].as_str().unwrap_or("?")).collect();
    assert_eq!(kinds, ["lock_granted", "lock_waiting", "lock_closed", "lock_granted"]);
    assert!(told.iter().all(|event| event["lock"] == "door"), "{told:?}");
    let text = format!("{told:?}");
    assert!(!text.contains(&held.lease_id.to_string()) && !text.contains("door-alice"), "{text}");
}
