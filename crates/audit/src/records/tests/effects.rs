use palisade_core::{
    HolderName, LeaseId, LockName, ObjectKey,
    history::{Subject, What},
    lease::Lease,
    lock::{Holding, Lock, LockClose, LockGrant, Seats},
    object::{Content, Intent, LastWrite, NumberKind, Object},
};

use super::*;

fn lock_name() -> LockName {
    "nightly".parse().expect("a name")
}

fn key() -> ObjectKey {
    "films/1.mp4".parse().expect("a key")
}

fn holder() -> HolderName {
    "host-1".parse().expect("a name")
}

fn grant(token: u64, closed: bool) -> LockGrant {
    LockGrant {
        name: lock_name(),
        pair: Pair { token: number(token), lease_id: LeaseId(u128::from(token)) },
        holder: holder(),
        request_id: "r".parse().expect("an id"),
        closed: closed.then_some((Timestamp(5), LockClose::Released)),
    }
}

fn lock(fence: u64, token: Option<u64>) -> Lock {
    let holding = token.map(|token| Holding {
        token: number(token),
        lease_id: LeaseId(u128::from(token)),
        holder: holder(),
        request_id: "r".parse().expect("an id"),
        ticket: number(token),
        granted_at: Timestamp(1),
        waited_ms: 0,
        lease: Lease::granted(30_000, Moment { at: Timestamp(1), life: 1 }),
        seats: Seats::default(),
    });
    Lock { name: lock_name(), fence: number(fence), holding, waiters: Vec::new() }
}

fn object(fence: u64, written_by: u64, content: Option<Content>) -> Object {
    let last = LastWrite {
        number: number(written_by),
        lease_id: None,
        op: 1,
        intent: Intent::Put(Digest::of(b"film")),
        version: number(12),
        at: Timestamp(1),
    };
    Object { key: key(), kind: NumberKind::Grants, fence: number(fence), last, content }
}

fn wrote(token: u64) -> Event {
    let what = What::ObjectWritten {
        token: number(token),
        op: 1,
        version: number(12),
        digest: Some(Digest::of(b"film")),
    };
    Event { at: Timestamp(1), subject: Subject::Object(key()), what }
}

/// A small store in order, with a lock and an object besides.
fn check(
    (lock, grants): (Option<Lock>, &[LockGrant]),
    (object, journal): (Option<Object>, &[Event]),
) -> Vec<(Rule, String)> {
    let store = Store::lived_in();
    let mut checker = Checker::new(number(20));
    store.jobs.iter().for_each(|job| checker.job(job));
    (1..).zip(store.journal.iter().chain(journal)).for_each(|(at, event)| {
        checker.event(at, event);
    });
    if let Some(lock) = lock {
        checker.lock(&lock);
    }
    for grant in grants {
        checker.lock_grant(grant);
    }
    if let Some(object) = object {
        checker.object(&object);
    }
    checker.finish().into_iter().map(|found| (found.rule, found.record)).collect()
}

fn check_lock(lock: Lock, grants: &[LockGrant]) -> Vec<(Rule, String)> {
    check((Some(lock), grants), (None, &[]))
}

fn check_object(object: Object, journal: &[Event]) -> Vec<(Rule, String)> {
    check((None, &[]), (Some(object), journal))
}

fn told(rule: Rule, record: &str) -> Vec<(Rule, String)> {
    vec![(rule, record.to_owned())]
}

#[test]
fn locks_and_objects_in_order_yield_nothing() {
    assert_eq!(check_lock(lock(11, Some(11)), &[grant(9, true), grant(11, false)]), []);
    assert_eq!(check_lock(lock(12, None), &[grant(9, true), grant(11, true)]), []);
    assert_eq!(check_object(object(9, 9, None), &[wrote(9)]), []);
    assert_eq!(check_object(object(10, 9, None), &[wrote(8), wrote(9)]), [], "it was raised");
}

#[test]
fn two_open_grants_of_a_lock_are_found() {
    let found = check_lock(lock(11, Some(11)), &[grant(9, false), grant(11, false)]);
    assert_eq!(found, told(Rule::Locks, "lock nightly"));
}

#[test]
fn a_lock_that_names_another_holder_than_its_grants_is_found() {
    let found = check_lock(lock(11, None), &[grant(9, true), grant(11, false)]);
    assert_eq!(found, told(Rule::Locks, "lock nightly"));
    let found = check_lock(lock(12, Some(11)), &[grant(11, false)]);
    assert_eq!(found, told(Rule::Locks, "lock nightly"), "its fence is not its holder's token");
    assert_eq!(check((None, &[grant(9, true)]), (None, &[])), told(Rule::Locks, "lock nightly"));
}

#[test]
fn a_lock_whose_fence_fell_is_found() {
    let found = check_lock(lock(9, None), &[grant(9, true)]);
    assert_eq!(found, told(Rule::Fence, "lock nightly"));
}

#[test]
fn numbers_that_were_never_drawn_are_found() {
    let found = check_lock(lock(22, None), &[grant(21, true)]);
    let expected = told(Rule::RisingTokens, "lock nightly");
    assert_eq!(found, [expected.clone(), expected].concat());
    let found = check_object(object(21, 9, None), &[]);
    assert_eq!(found, told(Rule::RisingTokens, "object films/1.mp4"));
}

#[test]
fn an_object_written_below_its_fence_is_found_in_its_record_and_in_the_journal() {
    let found = check_object(object(9, 10, None), &[]);
    assert_eq!(found, told(Rule::Fence, "object films/1.mp4"));
    let found = check_object(object(10, 9, None), &[wrote(10), wrote(9)]);
    assert_eq!(found, told(Rule::Fence, "journal 20"));
    let found = check_object(object(9, 9, None), &[wrote(10)]);
    assert_eq!(found, told(Rule::Fence, "object films/1.mp4"), "the journal saw a higher one");
}

#[test]
fn a_publication_of_what_the_job_is_not_is_found() {
    let of = |job: u64, token: u64| {
        Some(Content::Manifest { job: JobId(number(job)), token: number(token) })
    };
    assert_eq!(check_object(object(9, 9, of(1, 6)), &[]), []);
    for wrong in [of(1, 5), of(2, 6), of(400, 6)] {
        let found = check_object(object(9, 9, wrong), &[]);
        assert_eq!(found, told(Rule::Objects, "object films/1.mp4"));
    }
}

#[test]
fn a_completion_below_the_fence_in_the_journal_is_found() {
    let mut store = Store::lived_in();
    let moved = What::Moved { state: JobState::Running, fence: number(90) };
    store.journal.insert(9, Event::of_job(Timestamp(1), store.jobs[0].id, moved));
    let found = store.check();
    let told: Vec<_> = found.iter().map(|found| (found.rule, found.record.as_str())).collect();
    assert_eq!(told, [(Rule::Fence, "journal 11")]);
}
