use super::*;
use crate::{Timestamp, lock::LockClose};

fn number(value: u64) -> Number {
    Number::new(value).expect("small")
}

fn of(subject: Subject, what: What) -> Event {
    Event { at: Timestamp(1), subject, what }
}

fn lock(name: &str) -> Subject {
    Subject::Lock(name.parse().expect("a name"))
}

fn object() -> Subject {
    Subject::Object("films/latest".parse().expect("a key"))
}

fn granted(token: u64) -> What {
    let (token, ticket) = (number(token), number(token));
    let holder = "a".parse().expect("a name");
    What::LockGranted { token, ticket, holder, ttl_ms: 30_000, waited_ms: 0 }
}

fn closed(token: u64) -> What {
    let holder = "a".parse().expect("a name");
    let (how, token) = (LockClose::Released, number(token));
    What::LockClosed { token, holder, how, renewed_at: None, deadline: None }
}

fn written(token: u64) -> What {
    What::ObjectWritten { token: number(token), op: 1, version: number(90), digest: None }
}

fn refused(token: u64) -> What {
    let (verb, code, message) = ("put".into(), "stale_token".into(), "it is over".into());
    What::Refused { verb, token: number(token), code, message }
}

#[test]
fn a_locks_history_holds_what_its_holders_did_and_nothing_of_others() {
    let mut story = OfLock::new("studio".parse().expect("a name"));
    let journal = [
        (of(lock("studio"), granted(1)), true),
        (of(lock("studio/b"), granted(2)), false),
        (of(object(), written(1)), true),
        (of(object(), written(2)), false),
        (of(object(), refused(2)), false),
        (of(lock("studio"), closed(1)), true),
        (of(object(), refused(1)), true),
        (of(Subject::Job("j1".parse().expect("an id")), refused(1)), false),
    ];
    for (event, belongs) in journal {
        assert_eq!(story.takes(&event), belongs, "{event:?}");
    }
}

#[test]
fn what_was_written_under_a_grant_that_the_journal_has_forgotten_is_found_from_its_end_on() {
    let mut story = OfLock::new("studio".parse().expect("a name"));
    assert!(!story.takes(&of(object(), written(1))));
    assert!(story.takes(&of(lock("studio"), closed(1))));
    assert!(story.takes(&of(object(), refused(1))));
}
