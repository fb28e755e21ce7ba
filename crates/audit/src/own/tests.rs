mod locks;
mod rules;

use palisade_core::{
    JobId, Number, Timestamp,
    history::{Event, What},
    job::{CloseReason, JobState},
};

use super::{Translator, diagnose};
use crate::{
    EventKind,
    findings::{Cause, Confidence, Finding, Kind},
};

fn number(value: u64) -> Number {
    Number::new(value).expect("a small number")
}

fn at(at_s: u64, what: What) -> Event {
    Event::of_job(Timestamp(1_000_000 + at_s * 1_000), JobId(number(7)), what)
}

fn granted(at_s: u64, token: u64, worker: &str, backup: bool) -> Event {
    let worker = worker.parse().expect("a name");
    let session = "s".parse().expect("a session");
    at(at_s, What::Granted { token: number(token), worker, session, ttl_ms: 30_000, backup })
}

fn closed(at_s: u64, token: u64, worker: &str, reason: CloseReason) -> Event {
    let worker = worker.parse().expect("a name");
    at(at_s, What::Closed { token: number(token), worker, reason, message: None })
}

fn lapsed(at_s: u64, token: u64, renewed_s: u64) -> Event {
    let renewed_at = Timestamp(1_000_000 + renewed_s * 1_000);
    let deadline = renewed_at.plus_ms(30_000);
    at(at_s, What::Lapsed { token: number(token), renewed_at, deadline })
}

fn refused(at_s: u64, token: u64, verb: &str, code: &str) -> Event {
    let (verb, code) = (verb.to_owned(), code.to_owned());
    let message = "the attempt was superseded".to_owned();
    at(at_s, What::Refused { verb, token: number(token), code, message })
}

fn paused(at_s: u64, token: u64, pause_s: u64) -> Event {
    at(at_s, What::Paused { token: number(token), pause_ms: pause_s * 1_000 })
}

/// Hours of work under leases that are renewed, of which the journal says nothing.
fn long_work() -> Vec<Event> {
    vec![
        at(0, What::Moved { state: JobState::Running, fence: number(1) }),
        granted(0, 1, "a", false),
        closed(9_000, 1, "a", CloseReason::Completed),
    ]
}

/// A renders for an hour, stands still for 40 s; B is granted the job; A wakes and commits.
fn seed_story() -> Vec<Event> {
    vec![
        granted(0, 1, "a", false),
        lapsed(3_631, 1, 3_600),
        closed(3_631, 1, "a", CloseReason::Superseded),
        granted(3_631, 2, "b", false),
        refused(3_641, 1, "complete", "stale_token"),
        paused(3_642, 1, 40),
        closed(7_000, 2, "b", CloseReason::Completed),
    ]
}

fn findings(events: &[Event]) -> Vec<Finding> {
    diagnose((1..).zip(events)).findings
}

#[test]
fn the_seed_story_is_a_pause_an_overlap_and_a_late_effect_that_was_refused() {
    let found = findings(&seed_story());
    let told: Vec<_> = found.iter().map(|f| (f.kind, f.cause, f.landed)).collect();
    let expected = [
        (Kind::Pause, Cause::Pause, None),
        (Kind::Overlap, Cause::Pause, None),
        (Kind::LateEffect, Cause::Pause, Some(false)),
    ];
    for finding in expected {
        assert!(told.contains(&finding), "{finding:?} is not among {told:?}");
    }
    assert_eq!(told.len(), expected.len(), "{told:?}");
    let pause = found.iter().find(|finding| finding.kind == Kind::Pause).expect("asserted above");
    assert_eq!(pause.confidence, Confidence::Certain, "the worker said so itself");
    assert!(pause.headline.contains("40 s"), "{}", pause.headline);
    assert_eq!(pause.workers, ["a"]);
}

#[test]
fn a_pause_that_nobody_reported_is_inferred_from_the_last_renewal() {
    let mut events = seed_story();
    events.retain(|event| !matches!(event.what, What::Paused { .. }));
    let found = findings(&events);
    let pause = found.iter().find(|finding| finding.kind == Kind::Pause).expect("a pause");
    assert_eq!(pause.confidence, Confidence::Likely);
    assert_eq!(pause.at, Timestamp(1_000_000 + 3_600_000), "since the last renewal");
}

#[test]
fn the_journal_of_good_order_yields_no_finding() {
    let crash = vec![
        granted(0, 1, "a", false),
        lapsed(700, 1, 660),
        closed(700, 1, "a", CloseReason::Superseded),
        granted(700, 2, "b", false),
        closed(9_000, 2, "b", CloseReason::Completed),
    ];
    let given_back = vec![
        granted(0, 1, "a", false),
        closed(10, 1, "a", CloseReason::Released),
        granted(11, 2, "b", false),
        closed(12, 2, "b", CloseReason::Failed),
        granted(60, 3, "a", false),
        closed(90, 3, "a", CloseReason::Completed),
    ];
    let cancelled = vec![
        granted(0, 1, "a", false),
        closed(50, 1, "a", CloseReason::Cancelled),
        refused(51, 1, "complete", "stale_token"),
    ];
    let backup = vec![
        granted(0, 1, "a", false),
        granted(500, 2, "b", true),
        closed(900, 2, "b", CloseReason::Completed),
        closed(900, 1, "a", CloseReason::Outrun),
        refused(901, 1, "complete", "already_complete"),
    ];
    let still_running = vec![granted(0, 1, "a", false), at(90_000, What::Retried)];
    for events in [long_work(), crash, given_back, cancelled, backup, still_running] {
        assert_eq!(findings(&events), [], "{events:#?}");
    }
}

#[test]
fn a_renewal_that_came_late_while_nobody_had_taken_over_is_no_fault() {
    let renewed_at = Timestamp(1_100_000);
    let deadline = Timestamp(1_130_000);
    let events = [
        granted(0, 1, "a", false),
        at(140, What::RenewedLate { token: number(1), renewed_at, deadline }),
        closed(300, 1, "a", CloseReason::Completed),
    ];
    assert_eq!(findings(&events), []);
}

#[test]
fn what_an_entry_implies_comes_with_the_entrys_place() {
    let mut translator = Translator::default();
    let mut told = Vec::new();
    for (position, event) in (1..).zip(&seed_story()) {
        translator.push(position, event, &mut |entry| {
            told.push((entry.event, entry.at.0 / 1_000 - 1_000, entry.source.line));
        });
    }
    let expected = [
        (EventKind::Acquired, 0, 1),
        (EventKind::Renewed, 3_600, 2),
        (EventKind::Expired, 3_630, 2),
        (EventKind::Acquired, 3_631, 4),
        (EventKind::Refused, 3_641, 5),
        (EventKind::Paused, 3_642, 6),
        (EventKind::Effect, 7_000, 7),
        (EventKind::Completed, 7_000, 7),
    ];
    assert_eq!(told, expected);
}

/// Found by the simulator: whoever guesses a worker's token accuses it of nothing.
#[test]
fn a_strangers_refusal_is_not_told_of_the_worker_whose_token_it_showed() {
    let mut events = seed_story();
    let story = findings(&events);
    events.insert(5, refused(3_641, 1, "fail", "unknown_token"));
    events.insert(4, refused(3_635, 1, "complete", "unknown_token"));
    let kinds = |found: &[Finding]| found.iter().map(|one| (one.kind, one.at)).collect::<Vec<_>>();
    assert_eq!(kinds(&findings(&events)), kinds(&story));
    let gone: Vec<_> = seed_story()
        .into_iter()
        .filter(|event| !matches!(event.what, What::Refused { .. } | What::Paused { .. }))
        .chain([refused(7_001, 1, "complete", "unknown_token")])
        .collect();
    assert_eq!(findings(&gone), []);
}

#[test]
fn a_backup_attempt_has_a_picture_of_its_own_which_says_whose_backup_it_is() {
    let events = [
        granted(0, 1, "a", false),
        granted(500, 2, "b", true),
        closed(900, 2, "b", CloseReason::Completed),
        closed(900, 1, "a", CloseReason::Outrun),
    ];
    let pictures = super::timelines((1..).zip(&events), &[]);
    let names: Vec<_> = pictures.iter().map(|picture| picture.resource.as_str()).collect();
    assert_eq!(names, ["j7", "j7 (backup 2)"]);
    assert!(super::is_backup_of(names[1], "j7") && !super::is_backup_of(names[1], "j"));
    assert!(!super::is_backup_of(names[0], "j7"));
}
