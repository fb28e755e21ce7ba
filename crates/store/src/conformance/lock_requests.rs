//! Requests for a lock that come late, twice, or after their grant has ended; and grants that are
//! remembered for as long as anybody may show them.

use palisade_core::{
    LeaseId, Number,
    lease::Pair,
    limits,
    lock::{Acquired, LockClose},
    object::Condition,
    refusal::Refusal,
};

use crate::{
    Failure, Store, StoreExt,
    command::{AcquireLock, Command, DeleteObject, LeaveLock, PutObject, RenewLock},
};

use super::{
    bench::{Bench, PAST_TTL_MS},
    locks::{hold, hold_anew, holder, let_go, name, wait_for_door, wish},
    objects::{content, delete_of, key, object, of, put, refusal, write},
    retention::forget,
};

const HOUR_MS: u64 = 3_600_000;

/// A duplicate that was delayed on its way must not take the lock for somebody who has gone.
pub async fn a_late_duplicate_of_a_request_takes_nothing<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    let_go(bench, "door", alice).await;
    for wait_ms in [0, HOUR_MS] {
        let late = bench.store.run(wish(bench, "door", "alice", wait_ms)).await;
        let Refusal::LeaseLost { reason, fence } = refusal(late) else { panic!("it has ended") };
        assert_eq!((reason, fence), (LockClose::Released, alice.token.next()));
    }
    assert_eq!(holder(bench).await, None);
    let again = hold_anew(bench, "door", "alice").await;
    assert!(again.token > alice.token, "a request of its own is another matter");
}

/// Nor for somebody whose grant went to another, though its reply may have been lost.
pub async fn a_late_duplicate_is_told_that_its_grant_went_to_another<S: Store>(bench: &Bench<S>) {
    hold(bench, "door", "alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    let bob = hold(bench, "door", "bob").await;
    let Refusal::LeaseLost { reason, fence } =
        refusal(bench.store.run(wish(bench, "door", "alice", HOUR_MS)).await)
    else {
        panic!("it has ended")
    };
    assert_eq!((reason, fence), (LockClose::Superseded, bob.token));
    let_go(bench, "door", bob).await;
    assert_eq!(holder(bench).await, None, "it does not wait either");
}

/// The wish of a connection that broke may be asked again: nobody ever heard of its grant.
pub async fn a_grant_nobody_heard_of_may_be_asked_for_again<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    let bob = wait_for_door(bench, "bob").await;
    let_go(bench, "door", held).await;
    bench.store.run(bob).await.expect("answered");
    assert_eq!(holder(bench).await, None);
    hold(bench, "door", "bob").await;
}

/// A client asks another server for the same, and the first one notices late that it has gone.
pub async fn a_call_that_leaves_late_takes_nothing_from_another<S: Store>(bench: &Bench<S>) {
    let held = hold(bench, "door", "alice").await;
    let first = wait_for_door(bench, "bob").await;
    let second = wait_for_door(bench, "bob").await;
    wait_for_door(bench, "carol").await;
    bench.store.run(first.clone()).await.expect("answered");
    bench.store.run(first).await.expect("answered");
    let_go(bench, "door", held).await;
    assert_eq!(holder(bench).await.as_deref(), Some("bob"), "its place was kept");
    bench.store.run(second).await.expect("answered");
    assert_eq!(holder(bench).await.as_deref(), Some("carol"), "nobody listens any more");
}

/// Nor does a duplicate that is served after the grant was handed over, and hangs up.
pub async fn a_late_duplicate_that_leaves_ends_no_grant<S: Store>(bench: &Bench<S>) {
    let bob = hold(bench, "door", "bob").await;
    let AcquireLock { name: door, wish } = wish(bench, "door", "bob", HOUR_MS);
    let (request_id, call) = (wish.request_id.clone(), wish.lease_id);
    let late = bench.store.run(AcquireLock { name: door.clone(), wish }).await;
    assert!(matches!(late, Ok(Acquired::Granted(_))), "{late:?}");
    bench.store.run(LeaveLock { name: door, request_id, call }).await.expect("answered");
    bench.store.run(RenewLock { name: name("door"), pair: bob }).await.expect("it holds it still");
}

/// The same request at the same time, as a network may deliver it.
pub async fn a_duplicate_at_once_gets_the_same_grant<S: Store>(bench: &Bench<S>) {
    let twice = wish(bench, "door", "alice", 0);
    let other = wish(bench, "door", "alice", 0);
    let answers = bench.store.run_all(vec![twice, other]).await;
    let [Ok(Acquired::Granted(first)), Ok(Acquired::Granted(second))] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((first.token, first.lease_id), (second.token, second.lease_id));
}

/// The same name tells nothing: a grant is what was granted, not who asked.
pub async fn a_holder_that_acquires_again_does_not_revive_its_old_pair<S: Store>(bench: &Bench<S>) {
    let old = hold(bench, "door", "alice").await;
    write(bench, old, "first").await.expect("it may");
    let_go(bench, "door", old).await;
    let new = hold_anew(bench, "door", "alice").await;
    assert_eq!(refusal(write(bench, old, "late").await).code(), "stale_token");
    assert_eq!(
        refusal(bench.store.run(RenewLock { name: name("door"), pair: old }).await).code(),
        "lease_lost"
    );
    for mixed in [Pair { lease_id: new.lease_id, ..old }, Pair { lease_id: old.lease_id, ..new }] {
        assert_eq!(refusal(write(bench, mixed, "mixed").await).code(), "unknown_token");
    }
    write(bench, new, "second").await.expect("it may");
}

/// An equal token with another lease id is a stranger's, also where it would only repeat.
pub async fn an_equal_token_with_another_lease_id_changes_nothing<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    write(bench, alice, "alice's").await.expect("it may");
    let stranger = Pair { lease_id: LeaseId(4), ..alice };
    assert_eq!(refusal(write(bench, stranger, "alice's").await).code(), "unknown_token");
    assert_eq!(refusal(delete_of(bench, stranger, 2).await).code(), "unknown_token");
    let open = bench.store.run(RenewLock { name: name("door"), pair: stranger }).await;
    assert_eq!(refusal(open).code(), "unknown_token");
    assert_eq!(content(bench).await, Some(of("alice's")));
}

/// Deleted by the newer holder; then the older one's put arrives at last.
pub async fn a_put_that_comes_after_a_newer_holders_delete_is_refused<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    let late = put(bench, alice, "alice's").await;
    bench.pass_ms(PAST_TTL_MS).await;
    let bob = hold(bench, "door", "bob").await;
    write(bench, bob, "bob's").await.expect("it may");
    delete_of(bench, bob, 2).await.expect("it may");
    let Refusal::StaleWrite { fence, .. } = refusal(bench.store.run(late).await) else {
        panic!("it is stale")
    };
    assert_eq!(fence, bob.token);
    assert_eq!(content(bench).await, None);
}

/// A holder's delete, its repeat, and the put before it that comes late.
pub async fn a_delete_is_answered_again_and_its_holders_earlier_put_refused<S: Store>(
    bench: &Bench<S>,
) {
    let alice = hold(bench, "door", "alice").await;
    let first = PutOp { op: 1, text: "first" }.of(bench, alice).await;
    let second = PutOp { op: 2, text: "second" }.of(bench, alice).await;
    bench.store.run(first.clone()).await.expect("it may");
    let deleted = delete_of(bench, alice, 3).await.expect("it may");
    let again = delete_of(bench, alice, 3).await.expect("it is answered again");
    assert!(again.repeated && again.object == deleted.object);
    for late in [first, second] {
        assert_eq!(refusal(bench.store.run(late).await).code(), "stale_op");
    }
    let other = DeleteObject { key: key("report"), pair: alice, op: 3, condition: Condition::None };
    assert!(bench.store.run(other).await.expect("the same").repeated);
    let put_as_3 = PutOp { op: 3, text: "third" }.of(bench, alice).await;
    assert_eq!(refusal(bench.store.run(put_as_3).await).code(), "op_required");
    assert_eq!(content(bench).await, None);
}

struct PutOp {
    op: u64,
    text: &'static str,
}

impl PutOp {
    async fn of<S: Store>(&self, bench: &Bench<S>, pair: Pair) -> PutObject {
        PutObject { op: self.op, ..put(bench, pair, self.text).await }
    }
}

/// An ended grant is told apart from one never granted for as long as its lease could be long;
/// after that it is refused all the same.
pub async fn an_ended_grant_is_remembered_and_then_forgotten<S: Store>(bench: &Bench<S>) {
    let old = hold(bench, "door", "alice").await;
    let kept = hold(bench, "other", "bob").await;
    let_go(bench, "door", old).await;
    bench.clock.advance_ms(limits::LOCK_GRANT_KEPT_MS);
    tick(bench).await;
    assert_eq!(refusal(write(bench, old, "late").await).code(), "stale_token");
    bench.clock.advance_ms(1_000);
    tick(bench).await;
    assert_eq!(refusal(write(bench, old, "late").await).code(), "unknown_token");
    let renewed = bench.store.run(RenewLock { name: name("door"), pair: old }).await;
    assert_eq!(refusal(renewed).code(), "unknown_token");
    write(bench, kept, "kept").await.expect("what is open is never forgotten");
    let next = hold_anew(bench, "door", "alice").await;
    assert!(next.token > kept.token, "numbers go on");
}

/// The tombstone's and the lock's, when everything else of them is gone.
pub async fn a_fence_outlives_all_that_is_forgotten<S: Store>(bench: &Bench<S>) {
    // Open all the time: nobody takes that lock.
    let old = hold(bench, "other", "alice").await;
    let young = hold(bench, "door", "bob").await;
    write(bench, young, "bob's").await.expect("it may");
    delete_of(bench, young, 2).await.expect("it may");
    let_go(bench, "door", young).await;
    for _ in 0..3 {
        bench.clock.advance_ms(limits::LOCK_GRANT_KEPT_MS * 200);
        tick(bench).await;
        forget(bench).await;
    }
    let Refusal::StaleWrite { fence, .. } = refusal(write(bench, old, "late").await) else {
        panic!("it is stale")
    };
    assert_eq!((fence, content(bench).await), (young.token, None));
    assert_eq!(refusal(write(bench, young, "late").await).code(), "unknown_token");
    let next = hold_anew(bench, "door", "carol").await;
    assert!(next.token > young.token, "numbers are not drawn again");
}

/// A process that has come again under its name is another holder: what its former life holds
/// ends as everybody's does.
pub async fn a_holders_name_inherits_nothing<S: Store>(bench: &Bench<S>) {
    let before = hold(bench, "door", "alice").await;
    let mut again = wish(bench, "door", "alice", 0);
    again.wish.request_id = "of-another-life".parse().expect("an id");
    let told = bench.store.run(again.clone()).await.expect("it is answered");
    assert!(matches!(told, Acquired::Held { .. }), "{told:?}");
    bench.pass_ms(PAST_TTL_MS).await;
    let told = bench.store.run(again).await.expect("it is answered");
    let Acquired::Granted(held) = told else { panic!("{told:?}") };
    assert!(held.token > before.token && held.lease_id != before.lease_id);
    let Refusal::LeaseLost { fence, .. } =
        refusal(bench.store.run(RenewLock { name: name("door"), pair: before }).await)
    else {
        panic!("it is lost")
    };
    assert_eq!(fence, held.token);
}

async fn tick<S: Store>(bench: &Bench<S>) {
    for answer in bench.store.execute(vec![Command::Tick]).await {
        answer.expect("a tick is answered");
    }
}

/// Whatever the tokens' order: the highest stands, and what was smaller and came later was refused.
pub async fn sixty_four_writers_in_any_order_leave_the_highest<S: Store>(bench: &Bench<S>) {
    for round in 0..4_u64 {
        let mut holders = Vec::new();
        for index in 0..64 {
            holders.push(hold(bench, &format!("lock-{round}-{index}"), "writer").await);
        }
        shuffle(&mut holders, 0x5EED + round);
        let (mut highest, mut refused) = (Number::ZERO, 0);
        let before = object(bench).await.map_or(Number::ZERO, |o| o.fence);
        assert!(holders.iter().all(|pair| pair.token > before), "numbers only rise");
        for pair in &holders {
            match write(bench, *pair, &format!("of {}", pair.token)).await {
                Ok(written) => {
                    assert!(pair.token > highest, "{} came after {highest}", pair.token);
                    highest = written.object.fence;
                }
                Err(Failure::Refused(Refusal::StaleWrite { fence, .. })) => {
                    assert!(pair.token < highest && fence == highest);
                    refused += 1;
                }
                Err(failure) => panic!("{failure}"),
            }
        }
        let last = holders.iter().map(|pair| pair.token).max().expect("there are some");
        let stands = content(bench).await;
        assert_eq!((highest, stands), (last, Some(of(&format!("of {last}")))));
        assert!(refused > 32, "a shuffle has few records: {refused}");
    }
}

/// Fisher and Yates's, with splitmix64.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for index in (1..items.len()).rev() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let bound = index as u64 + 1;
        let other = usize::try_from((mixed ^ (mixed >> 31)) % bound).expect("an index");
        items.swap(index, other);
    }
}
