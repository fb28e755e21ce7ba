use palisade_core::{Digest, Timestamp};

use super::{Desk, WaiterId};

const FAR: Timestamp = Timestamp(1_000_000);

fn group(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

/// A waiter that came, tried, and got nothing.
fn waiting(desk: &mut Desk, name: &str) -> WaiterId {
    let (id, _) = desk.enter(group(name));
    assert!(!desk.got_nothing(id, FAR));
    id
}

/// Who of these was called; they begin to try.
fn called(desk: &mut Desk, ids: &[WaiterId]) -> Vec<WaiterId> {
    ids.iter().copied().filter(|id| desk.begin(*id)).collect()
}

#[test]
fn as_many_are_woken_as_jobs_came_and_the_first_come_are_first() {
    let mut desk = Desk::default();
    let ids: Vec<_> = (0..5).map(|_| waiting(&mut desk, "a")).collect();
    desk.wake(2);
    assert_eq!(called(&mut desk, &ids), ids[..2]);
    desk.wake(1);
    assert_eq!(called(&mut desk, &ids), ids[2..3]);
}

#[test]
fn a_job_that_does_not_fit_the_first_goes_on_to_one_of_each_other_group() {
    let mut desk = Desk::default();
    let ids: Vec<_> =
        ["a", "a", "b", "b", "c"].iter().map(|name| waiting(&mut desk, name)).collect();
    desk.wake(1);
    assert_eq!(called(&mut desk, &ids), [ids[0]]);
    desk.got_nothing(ids[0], FAR);
    assert_eq!(called(&mut desk, &ids), [ids[2]]);
    desk.got_nothing(ids[2], FAR);
    assert_eq!(called(&mut desk, &ids), [ids[4]]);
    desk.got_nothing(ids[4], FAR);
    assert!(called(&mut desk, &ids).is_empty());
}

#[test]
fn a_job_taken_wakes_nobody_else() {
    let mut desk = Desk::default();
    let ids: Vec<_> = (0..3).map(|_| waiting(&mut desk, "a")).collect();
    desk.wake(1);
    assert_eq!(called(&mut desk, &ids), [ids[0]]);
    desk.leave(ids[0], true);
    assert!(called(&mut desk, &ids).is_empty());
}

#[test]
fn a_waiter_that_goes_passes_on_what_it_was_called_for() {
    let mut desk = Desk::default();
    let ids: Vec<_> = (0..3).map(|_| waiting(&mut desk, "a")).collect();
    desk.wake(1);
    // Its client hung up before it could try.
    desk.leave(ids[0], false);
    assert_eq!(called(&mut desk, &ids), [ids[1]]);
    // And this one's while it was trying.
    desk.leave(ids[1], false);
    assert_eq!(called(&mut desk, &ids), [ids[2]]);
}

#[test]
fn a_job_that_comes_while_everybody_is_trying_is_not_missed() {
    let mut desk = Desk::default();
    let (id, _) = desk.enter(group("a"));
    desk.wake(1);
    assert!(desk.got_nothing(id, FAR), "it may have looked too early, and looks again");
    assert!(!desk.got_nothing(id, FAR));
}

#[test]
fn a_job_that_came_while_another_was_taken_goes_to_the_next() {
    let mut desk = Desk::default();
    let (first, _) = desk.enter(group("a"));
    let (second, _) = desk.enter(group("a"));
    desk.wake(1);
    assert!(!desk.got_nothing(second, FAR));
    desk.leave(first, true);
    assert_eq!(called(&mut desk, &[second]), [second]);
}

#[test]
fn time_wakes_one_of_each_group_and_a_success_calls_the_next() {
    let mut desk = Desk::default();
    let ids: Vec<_> = ["a", "a", "b"].iter().map(|name| waiting(&mut desk, name)).collect();
    desk.expect_at(Timestamp(50));
    assert_eq!(desk.next_at(), Some(Timestamp(50)));
    desk.time(Timestamp(49));
    assert!(called(&mut desk, &ids).is_empty());
    desk.time(Timestamp(50));
    assert_eq!(called(&mut desk, &ids), [ids[0], ids[2]]);
    assert_eq!(desk.next_at(), None);
    desk.leave(ids[0], true);
    assert_eq!(called(&mut desk, &ids), [ids[1]]);
    desk.got_nothing(ids[2], Timestamp(70));
    assert!(called(&mut desk, &ids).is_empty());
    assert_eq!(desk.next_at(), Some(Timestamp(70)));
}

#[test]
fn an_empty_desk_keeps_nothing() {
    let mut desk = Desk::default();
    let id = waiting(&mut desk, "a");
    desk.leave(id, false);
    desk.wake(3);
    assert_eq!((desk.len(), desk.next_at()), (0, None));
    assert!(desk.groups.is_empty() && desk.waiters.is_empty());
}
