//! What was told, and what was published: each harm is found, and order yields nothing.

use palisade_core::{
    JobId,
    history::What,
    job::{Publication, PublicationOutcome},
    object::{Content, Intent, LastWrite, NumberKind, Object},
    outbox::{self, Delivery, Endpoint, EndpointId, EventType, Fate, Secret},
};

use super::*;

const HOOK: EndpointId = EndpointId(7);

fn endpoint() -> Endpoint {
    Endpoint {
        id: HOOK,
        tenant: "films".parse().expect("a name"),
        url: "https://customer.example/hook".to_owned(),
        events: [EventType::Completed, EventType::Failed, EventType::Cancelled].into(),
        secret: Secret::new([1; 32]),
        previous: None,
        created_at: Timestamp(1),
    }
}

/// The rows that the rule writes for the moves of a store's jobs.
fn rows(store: &Store) -> Vec<Delivery> {
    let told = |job: &Job| {
        let (seq, at) = (number(job.fence.get() + 10), job.moved_at);
        let row = |told| outbox::notice(job, told, seq, at);
        let notices: Vec<_> = outbox::told(None, job).into_iter().map(row).collect();
        notices.into_iter().map(move |it| Delivery::new(number(seq.get() + 1), HOOK, it, at))
    };
    store.jobs.iter().flat_map(told).collect()
}

fn look(store: &Store, rows: &[Delivery]) -> Vec<(Rule, String)> {
    let mut checker = Checker::new(number(100));
    checker.endpoint(&endpoint());
    store.jobs.iter().for_each(|job| checker.job(job));
    (1..).zip(&store.journal).for_each(|(at, event)| checker.event(at, event));
    for row in rows {
        checker.delivery(row);
    }
    checker.finish().into_iter().map(|found| (found.rule, found.record)).collect()
}

/// Harms rows that were in order, and asserts which records are found.
fn check_rows(harm: impl FnOnce(&mut Vec<Delivery>), expected: &[&str]) {
    let store = Store::lived_in();
    let mut rows = rows(&store);
    assert_eq!(rows.len(), 2, "one job is complete, one cancelled");
    harm(&mut rows);
    let expected: Vec<_> = expected.iter().map(|it| (Rule::Outbox, (*it).to_owned())).collect();
    assert_eq!(look(&store, &rows), expected);
}

#[test]
fn what_was_told_in_order_yields_nothing_with_a_journal_and_without() {
    check_rows(|_| {}, &[]);
    let mut store = Store::lived_in();
    let rows = rows(&store);
    store.journal.clear();
    assert_eq!(look(&store, &rows), []);
}

#[test]
fn a_lost_row_is_found_with_a_journal_and_without() {
    check_rows(|rows| drop(rows.remove(0)), &["j1"]);
    check_rows(|rows| drop(rows.remove(1)), &["j4"]);
    let mut store = Store::lived_in();
    let rows = rows(&store);
    store.journal.clear();
    assert_eq!(look(&store, &rows[1..]), [(Rule::Outbox, "j1".to_owned())]);
}

#[test]
fn a_row_too_many_is_found() {
    let twice = |rows: &mut Vec<Delivery>| {
        let again = Delivery { number: number(90), ..rows[0].clone() };
        rows.push(again);
    };
    check_rows(twice, &["j1"]);
    let of_nobody = |rows: &mut Vec<Delivery>| {
        let mut row = rows[0].clone();
        row.notice.job = JobId(number(77));
        rows.push(Delivery { number: number(90), ..row });
    };
    check_rows(of_nobody, &["evt_0000000000000007_90"]);
    let to_nobody = |rows: &mut Vec<Delivery>| {
        let row = rows[0].clone();
        rows.push(Delivery { number: number(90), endpoint: EndpointId(8), ..row });
    };
    check_rows(to_nobody, &["evt_0000000000000008_90"]);
}

#[test]
fn what_never_was_is_not_told() {
    let never = |rows: &mut Vec<Delivery>| {
        let mut row = rows[0].clone();
        row.notice.job = JobId(number(2));
        row.notice.submission = number(2);
        rows.push(Delivery { number: number(90), ..row });
    };
    check_rows(never, &["evt_0000000000000007_90"]);
    let by_another = |rows: &mut Vec<Delivery>| rows[0].notice.token = Some(number(5));
    let id = rows(&Store::lived_in())[0].id().to_string();
    check_rows(by_another, &[&id]);
}

#[test]
fn a_seq_that_does_not_rise_is_found() {
    let late = |rows: &mut Vec<Delivery>| {
        let mut row = rows[0].clone();
        row.notice.seq = number(row.notice.seq.get() - 1);
        row.notice.event = EventType::Failed;
        rows.push(Delivery { number: number(90), ..row });
    };
    // It never was, either.
    check_rows(late, &["evt_0000000000000007_90", "evt_0000000000000007_90"]);
    let id = rows(&Store::lived_in())[0].id().to_string();
    check_rows(|rows| rows[0].notice.seq = number(99), &[&id]);
}

#[test]
fn a_row_that_was_settled_and_is_gone_is_found() {
    let mut store = Store::lived_in();
    let fate = Fate {
        endpoint: HOOK,
        notification: number(55),
        submission: number(1),
        tries: 1,
        message: None,
    };
    let what = What::NotificationDelivered(fate);
    store.journal.push(Event::of_job(Timestamp(5), JobId(number(1)), what));
    let rows = rows(&store);
    let place = format!("journal {}", store.journal.len());
    assert_eq!(look(&store, &rows), [(Rule::Outbox, place)]);
}

/// The complete job of the store, published; and what its name shows.
fn published() -> (Job, Object) {
    let mut job = Store::lived_in().jobs.remove(0);
    let key: palisade_core::ObjectKey = "films/latest".parse().expect("a key");
    let (version, at) = (number(40), Timestamp(9));
    let outcome = Some(PublicationOutcome::Published { version, at });
    job.submissions[0].publication = Some(Publication { key: key.clone(), outcome });
    let (wish, token) = (job.submissions[0].number, job.completed_by().expect("complete"));
    let intent = Intent::Publish(job.id);
    let last = LastWrite { number: wish, lease_id: None, op: 1, intent, version, at };
    let content = Some(Content::Manifest { job: job.id, token });
    let kind = NumberKind::Submissions;
    (job, Object { key, kind, fence: wish, last, content })
}

fn look_at_name(job: &Job, object: Option<&Object>, due: &[(u64, u64)]) -> Vec<String> {
    let mut checker = Checker::new(number(100));
    checker.job(job);
    if let Some(object) = object {
        checker.object(object);
    }
    checker.all_objects_shown();
    let due = due.iter().map(|(wish, job)| (number(*wish), JobId(number(*job))));
    checker.publications_due(&due.collect());
    let found = checker.finish();
    assert!(found.iter().all(|found| found.rule == Rule::Publications), "{found:#?}");
    found.into_iter().map(|found| found.record).collect()
}

#[test]
fn names_in_order_yield_nothing_and_each_harm_is_found() {
    let (job, object) = published();
    assert_eq!(look_at_name(&job, Some(&object), &[]), [""; 0]);
    assert_eq!(look_at_name(&job, None, &[]), ["object films/latest"]);
    assert_eq!(look_at_name(&job, Some(&object), &[(1, 1)]), ["j1"], "it is not due");
    let raised = Object { fence: number(8), ..object.clone() };
    assert_eq!(look_at_name(&job, Some(&raised), &[]), ["object films/latest"]);
    let mut older = job.clone();
    let next = palisade_core::job::Submission { number: number(30), ..job.submissions[0].clone() };
    older.submissions.push(next);
    assert_eq!(look_at_name(&older, Some(&object), &[]), ["object films/latest"]);
    let mut pending = job.clone();
    pending.submissions[0].publication = Some(Publication::pending(object.key.clone()));
    assert_eq!(look_at_name(&pending, None, &[(1, 1)]), [""; 0]);
    assert_eq!(look_at_name(&pending, None, &[]), ["j1"], "it is due, and not on the list");
    assert_eq!(look_at_name(&pending, Some(&object), &[(1, 1)]), ["object films/latest"]);
}
