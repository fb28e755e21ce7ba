//! Stories of locks, and of what is written under them.

use palisade_core::{
    Digest,
    history::{Event, Subject, What},
    lock::LockClose,
};

use super::*;

const LOCK: &str = "studio";

fn of_lock(at_s: u64, what: What) -> Event {
    let subject = Subject::Lock(LOCK.parse().expect("a name"));
    Event { at: Timestamp(1_000_000 + at_s * 1_000), subject, what }
}

fn of_object(at_s: u64, what: What) -> Event {
    let subject = Subject::Object("films/latest".parse().expect("a key"));
    Event { at: Timestamp(1_000_000 + at_s * 1_000), subject, what }
}

fn granted(at_s: u64, token: u64, holder: &str) -> Event {
    let holder = holder.parse().expect("a name");
    let (token, ticket) = (number(token), number(token));
    of_lock(at_s, What::LockGranted { token, ticket, holder, ttl_ms: 30_000, waited_ms: 0 })
}

fn waits(at_s: u64, holder: &str) -> Event {
    let holder = holder.parse().expect("a name");
    of_lock(at_s, What::LockWaiting { ticket: number(90), holder })
}

fn closed(at_s: u64, token: u64, holder: &str, lapsed: Option<u64>) -> Event {
    let holder = holder.parse().expect("a name");
    let renewed_at = lapsed.map(|at_s| Timestamp(1_000_000 + at_s * 1_000));
    let deadline = renewed_at.map(|at| at.plus_ms(30_000));
    let how = if lapsed.is_some() { LockClose::Superseded } else { LockClose::Released };
    of_lock(at_s, What::LockClosed { token: number(token), holder, how, renewed_at, deadline })
}

fn written(at_s: u64, token: u64) -> Event {
    let digest = Some(Digest::of(b"film"));
    let version = number(1_000 + at_s);
    of_object(at_s, What::ObjectWritten { token: number(token), op: 1, version, digest })
}

fn refused_as(event: Event, token: u64, verb: &str, code: &str) -> Event {
    let (verb, code, message) = (verb.to_owned(), code.to_owned(), "it is over".to_owned());
    Event { what: What::Refused { verb, token: number(token), code, message }, ..event }
}

/// A holds the lock for an hour and stands still; B, who waits, is granted it; A wakes and writes.
fn pausers_write() -> Vec<Event> {
    vec![
        granted(0, 1, "a"),
        written(10, 1),
        waits(3_610, "b"),
        closed(3_631, 1, "a", Some(3_600)),
        granted(3_631, 2, "b"),
        written(3_632, 2),
        refused_as(of_object(3_641, What::Retried), 1, "put", "stale_token"),
        refused_as(of_lock(3_642, What::Retried), 1, "release", "lease_lost"),
        closed(3_700, 2, "b", None),
    ]
}

#[test]
fn a_paused_holders_write_is_a_late_effect_that_was_refused() {
    let found = findings(&pausers_write());
    let told: Vec<_> = found.iter().map(|f| (f.kind, f.cause, f.landed)).collect();
    let expected = [
        (Kind::Pause, Cause::Pause, None),
        (Kind::Overlap, Cause::Pause, None),
        (Kind::LateEffect, Cause::Pause, Some(false)),
    ];
    assert!(expected.iter().all(|one| told.contains(one)), "{told:?}");
    assert_eq!(told.len(), expected.len(), "{told:?}");
    assert!(found.iter().all(|finding| finding.resource == "lock studio"), "{found:#?}");
    let pause = found.iter().find(|finding| finding.kind == Kind::Pause).expect("asserted above");
    assert_eq!(pause.at, Timestamp(1_000_000 + 3_600_000), "since the last renewal");
}

#[test]
fn a_holder_that_hears_of_its_loss_and_stops_was_paused_and_no_more() {
    let events = vec![
        granted(0, 1, "a"),
        waits(5, "b"),
        closed(31, 1, "a", Some(0)),
        granted(31, 2, "b"),
        refused_as(of_lock(41, What::Retried), 1, "renew", "lease_lost"),
        closed(60, 2, "b", None),
    ];
    let found = findings(&events);
    let told: Vec<_> = found.iter().map(|finding| (finding.kind, finding.cause)).collect();
    assert_eq!(told, [(Kind::Pause, Cause::Pause)], "{found:#?}");
}

#[test]
fn a_holder_that_hears_of_its_loss_and_releases_all_the_same_did_not_work_on() {
    let mut events = vec![
        granted(0, 1, "a"),
        waits(5, "b"),
        closed(31, 1, "a", Some(0)),
        granted(31, 2, "b"),
        refused_as(of_lock(41, What::Retried), 1, "renew", "lease_lost"),
        refused_as(of_lock(42, What::Retried), 1, "release", "lease_lost"),
        closed(60, 2, "b", None),
    ];
    let kinds = |events: &[Event]| findings(events).iter().map(|f| f.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&events), [Kind::Pause]);
    // Without the answer to its renewal it would have known nothing, and worked until then.
    events.remove(4);
    assert_eq!(kinds(&events), [Kind::Pause, Kind::Overlap]);
}

#[test]
fn a_picture_of_a_lock_shows_who_waited_for_how_long_and_who_left_with_nothing() {
    let left = |at_s, holder: &str| {
        let holder = holder.parse().expect("a name");
        of_lock(at_s, What::LockLeft { ticket: number(91), holder })
    };
    let mut waits_too = waits(8, "c");
    if let What::LockWaiting { ticket, .. } = &mut waits_too.what {
        *ticket = number(91);
    }
    let mut events = pausers_write();
    events.insert(3, waits_too);
    events.insert(4, left(9, "c"));
    events.sort_by_key(|event| event.at);
    let positions = (1..).zip(&events);
    let found = diagnose(positions.clone());
    let pictures = crate::own::timelines(positions, &found.findings);
    let picture = &pictures[0];
    assert_eq!((pictures.len(), picture.resource.as_str()), (1, "lock studio"));
    let lanes: Vec<_> = picture.lanes.iter().map(|lane| lane.worker.as_str()).collect();
    assert_eq!(lanes, ["a", "b", "c"], "who never held it comes last");
    let waited = |lane: usize| {
        let seconds = |at: Timestamp| (at.0 - 1_000_000) / 1_000;
        let waits = picture.lanes[lane].waits.iter();
        waits.map(|wait| (seconds(wait.from), seconds(wait.to))).collect::<Vec<_>>()
    };
    assert_eq!((waited(0), waited(1), waited(2)), (vec![], vec![(3_610, 3_631)], vec![(8, 9)]));
    assert_eq!(picture.takeovers.len(), 1);
    assert_eq!(picture.lanes[0].pauses.len(), 1);
    // Renewals that nobody tells of keep a lease: its window is one, and ends when it was lost.
    assert_eq!(picture.lanes[0].windows.len(), 1);
    assert_eq!(picture.lanes[0].windows[0].stretch.to, Timestamp(1_000_000 + 3_630_000));
}

#[test]
fn locks_in_good_order_yield_no_finding() {
    let in_turn = vec![
        granted(0, 1, "a"),
        waits(1, "b"),
        waits(2, "c"),
        written(9_000, 1),
        closed(9_001, 1, "a", None),
        granted(9_001, 2, "b"),
        written(9_002, 2),
        closed(9_003, 2, "b", None),
        granted(9_003, 3, "c"),
        written(9_004, 3),
        closed(9_005, 3, "c", None),
    ];
    let crash = vec![
        granted(0, 1, "a"),
        written(5, 1),
        waits(6, "b"),
        closed(31, 1, "a", Some(0)),
        granted(31, 2, "b"),
        written(33, 2),
        closed(40, 2, "b", None),
    ];
    let strangers = vec![
        granted(0, 1, "a"),
        closed(10, 1, "a", None),
        refused_as(of_object(11, What::Retried), 1, "put", "stale_token"),
        refused_as(of_object(12, What::Retried), 77, "put", "stale_token"),
        refused_as(of_lock(13, What::Retried), 1, "acquire", "lease_lost"),
    ];
    // A journal that begins in the middle.
    let tail: Vec<_> = (0..9).map(|index| waits(index * 120, "b")).collect();
    let held = vec![granted(0, 1, "a"), waits(5, "b"), waits(40_000, "c")];
    for events in [in_turn, crash, strangers, tail, held] {
        assert_eq!(findings(&events), [], "{events:#?}");
    }
}

#[test]
fn a_lock_called_like_a_job_is_not_the_job() {
    let mut events = vec![super::granted(0, 1, "w", false), granted(1, 2, "a")];
    if let Subject::Lock(name) = &mut events[1].subject {
        *name = "j7".parse().expect("a name");
    }
    events.push(super::closed(50, 1, "w", CloseReason::Completed));
    assert_eq!(findings(&events), []);
}
