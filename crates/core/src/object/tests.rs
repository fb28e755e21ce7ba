//! The order of checks, and what each refusal leaves as it was.

use super::*;
use crate::{lease::Pair, refusal::Refusal};

const NOW: Timestamp = Timestamp(5);

fn number(value: u64) -> Number {
    Number::new(value).unwrap()
}

fn pair(token: u64) -> Pair {
    Pair { token: number(token), lease_id: LeaseId(u128::from(token)) }
}

fn key() -> ObjectKey {
    "report".parse().unwrap()
}

fn put(token: u64, op: u64, text: &str) -> Write {
    let content = Content::Blob {
        digest: Digest::of(text.as_bytes()),
        generation: number(1),
        size_bytes: 1,
        media_type: "text/plain".to_owned(),
    };
    Write { pair: pair(token), op, content: Some(content), condition: Condition::None }
}

fn written(object: Option<&Object>, asked: Write, version: u64) -> Object {
    let after = write(&key(), object, asked, &Standing::Open, (number(version), NOW));
    after.expect("it may").object
}

fn refused(object: &Object, asked: Write, standing: &Standing) -> Refusal {
    write(&key(), Some(object), asked, standing, (number(99), NOW)).expect_err("it may not")
}

#[test]
fn the_pairs_standing_comes_before_everything_that_the_key_says() {
    let object = written(None, put(33, 1, "a"), 40);
    let unknown = refused(&object, put(90, 1, "b"), &Standing::Unknown);
    assert_eq!(unknown.code(), "unknown_token");
    let closed = Standing::Closed { fence: number(34), reason: "superseded".to_owned() };
    let Refusal::StaleWrite { fence, reason } = refused(&object, put(33, 2, "b"), &closed) else {
        panic!("it is stale")
    };
    assert_eq!((fence, reason.as_str()), (number(34), "superseded"));
    let lower = refused(&object, put(32, 9, "b"), &Standing::Open);
    assert_eq!(lower.code(), "stale_token");
}

#[test]
fn a_key_that_submissions_guard_takes_no_holders_write_and_the_other_way_round() {
    let job = JobId(number(7));
    let fresh = (number(50), NOW);
    let Ok(Published::Yes(object)) = publish(&key(), None, number(8), (job, number(9)), fresh)
    else {
        panic!("it is the first")
    };
    assert_eq!(refused(&object, put(60, 1, "a"), &Standing::Open).code(), "wrong_kind");
    let ours = written(None, put(33, 1, "a"), 40);
    let other = publish(&key(), Some(&ours), number(80), (job, number(9)), fresh);
    assert_eq!(other.expect_err("another kind").code(), "wrong_kind");
}

#[test]
fn an_older_submission_never_overwrites_a_newer_one_and_repeats_do_nothing() {
    let (old, new) = (JobId(number(1)), JobId(number(2)));
    let fresh = (number(50), NOW);
    let Ok(Published::Yes(object)) = publish(&key(), None, number(20), (new, number(9)), fresh)
    else {
        panic!("it is the first")
    };
    let again = publish(&key(), Some(&object), number(20), (new, number(9)), fresh);
    assert_eq!(again, Ok(Published::Already));
    let late = publish(&key(), Some(&object), number(10), (old, number(30)), fresh);
    assert_eq!(late, Ok(Published::Superseded { fence: number(20) }));
    let next = publish(&key(), Some(&object), number(21), (old, number(3)), fresh);
    assert!(matches!(next, Ok(Published::Yes(_))), "the wish counts, not the rendering's age");
}

#[test]
fn a_holders_own_writes_keep_their_order() {
    let first = written(None, put(33, 1, "a"), 40);
    let second = written(Some(&first), put(33, 2, "b"), 41);
    let late = refused(&second, put(33, 1, "a"), &Standing::Open);
    assert_eq!(late, Refusal::StaleOp { op: 1, last: 2 });
    let other = refused(&second, put(33, 2, "c"), &Standing::Open);
    assert_eq!(other, Refusal::OpRequired { op: 2 });
    let fresh = (number(42), NOW);
    let again = write(&key(), Some(&second), put(33, 2, "b"), &Standing::Open, fresh).unwrap();
    assert!(again.repeated && again.object == second);
    let newer = written(Some(&second), put(34, 1, "c"), 43);
    assert_eq!(newer.fence, number(34), "another holder's ops begin anew");
}

#[test]
fn a_raise_keeps_what_can_be_read_and_who_wrote_it() {
    let object = written(None, put(33, 1, "a"), 40);
    let fresh = (number(44), NOW);
    let raised = raise(&key(), Some(object.clone()), &pair(35), &Standing::Open, fresh).unwrap();
    assert!(!raised.repeated);
    assert_eq!(raised.object, Object { fence: number(35), ..object.clone() });
    assert_eq!(refused(&raised.object, put(33, 2, "b"), &Standing::Open).code(), "stale_token");
    let first = written(Some(&raised.object), put(35, 1, "b"), 45);
    assert_eq!((first.fence, first.last.number), (number(35), number(35)));
    let alone = raise(&key(), None, &pair(35), &Standing::Open, fresh).unwrap().object;
    assert!(!alone.is_readable());
    assert_eq!(refused(&alone, put(34, 1, "b"), &Standing::Open).code(), "stale_token");
    assert!(written(Some(&alone), put(35, 1, "b"), 46).is_readable());
}
