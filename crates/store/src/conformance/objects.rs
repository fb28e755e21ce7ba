//! Fenced objects: who may write, who may not any more, and what stays.

use palisade_core::{
    Digest, LeaseId, Number, ObjectKey,
    lease::Pair,
    object::{Condition, Content, Object, Written},
    refusal::Refusal,
};

use crate::{
    Failure, Store, StoreExt,
    command::{DeleteObject, PutObject, RaiseObject},
    query::{Page, Query, View},
};

use super::{
    bench::{Bench, PAST_TTL_MS},
    locks::{hold, let_go, wish},
};

pub(crate) fn key(text: &str) -> ObjectKey {
    text.parse().expect("a key")
}

/// A put under op 1, without a condition.
pub(crate) async fn put<S: Store>(bench: &Bench<S>, pair: Pair, content: &str) -> PutObject {
    PutObject {
        key: key("report"),
        pair,
        op: 1,
        digest: bench.bring(content).await,
        generation: Number::ZERO,
        media_type: "text/plain".to_owned(),
        condition: Condition::None,
    }
}

pub(crate) async fn write<S: Store>(
    bench: &Bench<S>,
    pair: Pair,
    content: &str,
) -> Result<Written, Failure> {
    bench.store.run(put(bench, pair, content).await).await
}

pub(super) async fn delete_of<S: Store>(
    bench: &Bench<S>,
    pair: Pair,
    op: u64,
) -> Result<Written, Failure> {
    let condition = Condition::None;
    bench.store.run(DeleteObject { key: key("report"), pair, op, condition }).await
}

pub(super) async fn object<S: Store>(bench: &Bench<S>) -> Option<Object> {
    match bench.store.query(Query::Object(key("report"))).await {
        Ok(View::Object(object)) => object.map(|object| *object),
        other => panic!("{other:?}"),
    }
}

/// What can be read, as a digest.
pub(super) async fn content<S: Store>(bench: &Bench<S>) -> Option<Digest> {
    match object(bench).await?.content? {
        Content::Blob { digest, .. } => Some(digest),
        Content::Manifest { .. } => panic!("nobody published"),
    }
}

pub(super) fn of(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

pub(super) fn refusal<A: std::fmt::Debug>(result: Result<A, Failure>) -> Refusal {
    match result {
        Err(Failure::Refused(refusal)) => refusal,
        other => panic!("it should be refused, but: {other:?}"),
    }
}

/// Alice is stopped past her ttl, Bob is granted the lock.
async fn two_holders<S: Store>(bench: &Bench<S>) -> (Pair, Pair) {
    let alice = hold(bench, "door", "alice").await;
    bench.pass_ms(PAST_TTL_MS).await;
    (alice, hold(bench, "door", "bob").await)
}

/// From the moment of the new grant, whatever the key has seen.
pub async fn a_holder_that_was_replaced_is_refused_before_the_new_one_wrote<S: Store>(
    bench: &Bench<S>,
) {
    let (alice, bob) = two_holders(bench).await;
    let Refusal::StaleWrite { fence, .. } = refusal(write(bench, alice, "alice's").await) else {
        panic!("it is stale");
    };
    assert_eq!(fence, bob.token, "the refusal names who has it");
    assert_eq!(object(bench).await, None, "it left no trace");
    write(bench, bob, "bob's").await.expect("bob may");
}

/// And after.
pub async fn a_holder_that_was_replaced_is_refused_after_the_new_one_wrote<S: Store>(
    bench: &Bench<S>,
) {
    let (alice, bob) = two_holders(bench).await;
    let written = write(bench, bob, "bob's").await.expect("bob may").object;
    assert_eq!((written.fence, written.last.number), (bob.token, bob.token));
    for attempt in ["alice's", "bob's"] {
        assert_eq!(refusal(write(bench, alice, attempt).await).code(), "stale_token");
    }
    assert_eq!(refusal(delete_of(bench, alice, 2).await).code(), "stale_token");
    assert_eq!(object(bench).await, Some(written));
    // A later lock's token is higher, and so is whoever released refused.
    let_go(bench, "door", bob).await;
    assert_eq!(refusal(write(bench, bob, "bob's second").await).code(), "stale_token");
    assert_eq!(content(bench).await, Some(of("bob's")));
}

/// The same for workers: the pair of a job's attempt fences objects too.
pub async fn a_job_that_was_taken_over_fences_its_first_worker<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let first = bench.grant("alice").await;
    write(bench, first.pair, "draft").await.expect("it is open");
    bench.pass_ms(PAST_TTL_MS).await;
    let second = bench.grant("bob").await;
    let Refusal::StaleWrite { fence, .. } = refusal(write(bench, first.pair, "late").await) else {
        panic!("it is stale");
    };
    assert_eq!(fence, second.pair.token);
    assert_eq!(content(bench).await, Some(of("draft")), "the old content is readable throughout");
    write(bench, second.pair, "final").await.expect("it is open");
    let complete = bench.complete_of(&second).await;
    bench.store.run(complete).await.expect("it completes");
    assert_eq!(refusal(write(bench, second.pair, "after").await).code(), "stale_token");
    assert_eq!(content(bench).await, Some(of("final")));
}

/// The number alone is no pair.
pub async fn a_stranger_with_a_holders_number_is_refused<S: Store>(bench: &Bench<S>) {
    let bob = hold(bench, "door", "bob").await;
    let stranger = Pair { lease_id: LeaseId(99), ..bob };
    assert_eq!(refusal(write(bench, stranger, "stranger's").await).code(), "unknown_token");
    bench.new_job().await;
    let grant = bench.grant("worker").await;
    let stranger = Pair { lease_id: LeaseId(99), ..grant.pair };
    assert_eq!(refusal(write(bench, stranger, "stranger's").await).code(), "unknown_token");
    write(bench, bob, "bob's").await.expect("bob may");
    let equal = Pair { lease_id: LeaseId(98), ..bob };
    assert_eq!(refusal(write(bench, equal, "bob's").await).code(), "unknown_token");
    assert_eq!(content(bench).await, Some(of("bob's")));
}

/// A wrong client must not shut a key for ever.
pub async fn a_token_from_the_future_is_refused_and_locks_nothing<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    let future = Pair { token: Number::new(1 << 50).expect("in range"), ..alice };
    assert_eq!(refusal(write(bench, future, "future").await).code(), "unknown_token");
    let raise = RaiseObject { key: key("report"), pair: future };
    assert_eq!(refusal(bench.store.run(raise).await).code(), "unknown_token");
    write(bench, alice, "alice's").await.expect("nothing was locked");
}

/// A tombstone refuses what is older than the delete.
pub async fn a_deleted_object_keeps_its_fence<S: Store>(bench: &Bench<S>) {
    let old = hold(bench, "other", "old").await;
    let young = hold(bench, "door", "young").await;
    write(bench, young, "content").await.expect("it may");
    delete_of(bench, young, 2).await.expect("it may");
    let tombstone = object(bench).await.expect("it stays as a tombstone");
    assert_eq!((tombstone.content, tombstone.fence), (None, young.token));
    // Still open, but older than the delete.
    assert_eq!(refusal(write(bench, old, "late").await).code(), "stale_token");
    // And the deleter's own put that was on its way before the delete.
    assert_eq!(refusal(write(bench, young, "content").await).code(), "stale_op");
    assert_eq!(content(bench).await, None);
}

/// A lost reply is asked for again; nothing is written twice.
pub async fn a_put_repeated_is_answered_again<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    let first = write(bench, alice, "content").await.expect("it may");
    let again = write(bench, alice, "content").await.expect("it is answered again");
    assert!(!first.repeated && again.repeated);
    assert_eq!(first.object, again.object);
    assert_eq!(refusal(write(bench, alice, "another").await).code(), "op_required");
    assert_eq!(content(bench).await, Some(of("content")));
}

/// One holder's writes are numbered by it, so that the first cannot overtake the second.
pub async fn a_holders_reordered_writes_are_refused<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    let first = put(bench, alice, "first").await;
    let second = PutObject { op: 2, ..put(bench, alice, "second").await };
    bench.store.run(second).await.expect("it may");
    let late = refusal(bench.store.run(first).await);
    assert_eq!(late, Refusal::StaleOp { op: 1, last: 2 });
    assert_eq!(content(bench).await, Some(of("second")));
}

/// They replace nothing, and a refusal says which version there is.
pub async fn conditions_are_further_conditions<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    let with = async |op, condition, text: &str| {
        bench.store.run(PutObject { op, condition, ..put(bench, alice, text).await }).await
    };
    assert_eq!(
        refusal(with(1, Condition::Exists, "a").await),
        Refusal::ConditionFailed { version: None }
    );
    let first = with(1, Condition::Absent, "a").await.expect("nothing is there").object;
    let version = first.last.version;
    assert_eq!(
        refusal(with(2, Condition::Absent, "b").await),
        Refusal::ConditionFailed { version: Some(version) }
    );
    let second = with(2, Condition::Version(version), "b").await.expect("it is that version");
    assert!(second.object.last.version > version);
    assert_eq!(refusal(with(3, Condition::Version(version), "c").await).code(), "condition_failed");
    assert_eq!(content(bench).await, Some(of("b")));
}

/// A new holder's first act, where the one before it is still open.
pub async fn a_raise_refuses_older_holders_and_keeps_the_content<S: Store>(bench: &Bench<S>) {
    let old = hold(bench, "other", "old").await;
    let young = hold(bench, "door", "young").await;
    write(bench, old, "old").await.expect("it may");
    let raise = RaiseObject { key: key("report"), pair: young };
    let raised = bench.store.run(raise.clone()).await.expect("it may").object;
    assert_eq!((raised.fence, raised.last.number), (young.token, old.token));
    assert!(bench.store.run(raise).await.expect("again").repeated);
    assert_eq!(content(bench).await, Some(of("old")));
    let late = PutObject { op: 2, ..put(bench, old, "old again").await };
    assert_eq!(refusal(bench.store.run(late).await).code(), "stale_token");
    write(bench, young, "young").await.expect("the first write of its own");
}

/// Bytes first, then the pointer.
pub async fn a_put_of_bytes_that_are_missing_is_refused<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    let digest = Digest::of(b"never brought");
    let missing = PutObject { digest, ..put(bench, alice, "content").await };
    assert_eq!(refusal(bench.store.run(missing).await).code(), "missing_blob");
    assert_eq!(object(bench).await, None);
}

/// Whatever the order: at the end the highest stands, and every smaller one after it was refused.
pub async fn sixty_four_writers_leave_the_highest<S: Store>(bench: &Bench<S>) {
    let mut holders = Vec::new();
    for index in 0..64 {
        holders.push(hold(bench, &format!("lock-{index}"), "writer").await);
    }
    // A fixed shuffle: 37 and 64 have no common divisor.
    let order: Vec<_> = (0..64).map(|index| holders[index * 37 % 64]).collect();
    let mut puts = Vec::new();
    for pair in &order {
        puts.push(put(bench, *pair, &format!("of {}", pair.token)).await);
    }
    let answers = bench.store.run_all(puts).await;
    let mut highest = Number::ZERO;
    for (pair, answer) in order.iter().zip(answers) {
        match answer {
            Ok(_) => {
                assert!(pair.token > highest, "{} came after {highest}", pair.token);
                highest = pair.token;
            }
            Err(failure) => {
                assert!(pair.token < highest, "{} above {highest}: {failure}", pair.token);
            }
        }
    }
    let last = holders[63].token;
    assert_eq!((highest, content(bench).await), (last, Some(of(&format!("of {last}")))));
}

/// Only what can be read, by key.
pub async fn objects_are_listed_by_prefix_and_pages<S: Store>(bench: &Bench<S>) {
    let alice = hold(bench, "door", "alice").await;
    for name in ["a", "b/1", "b/2", "b/3", "c"] {
        let asked = PutObject { key: key(name), ..put(bench, alice, name).await };
        bench.store.run(asked).await.expect("it may");
    }
    let gone = DeleteObject { key: key("b/2"), pair: alice, op: 2, condition: Condition::None };
    bench.store.run(gone).await.expect("it may");
    let list = async |after: Option<&str>, limit| {
        let after = after.map(str::to_owned);
        let page = Page { prefix: "b/".to_owned(), after, limit };
        match bench.store.query(Query::Objects(page)).await {
            Ok(View::Objects(found)) => {
                found.into_iter().map(|object| object.key.to_string()).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(list(None, 10).await, ["b/1", "b/3"]);
    assert_eq!(list(None, 1).await, ["b/1"]);
    assert_eq!(list(Some("b/1"), 10).await, ["b/3"]);
    // Somebody else's wish for the lock changes nothing of what is written.
    bench.store.run(wish(bench, "door", "bob", 0)).await.expect("it is told");
}
