//! Histories that could have come about one at a time, and some that could not.

use palisade_core::Number;

use super::{Asked, Holding, Operation, Told, is_linearizable};

fn token(value: u64) -> Number {
    Number::new(value).expect("a small number")
}

fn asked(asked: Asked, from: u64, to: u64, told: Told) -> Operation {
    Operation { asked_at: from, asked, told: Some((to, told)) }
}

fn unheard(asked: Asked, from: u64) -> Operation {
    Operation { asked_at: from, asked, told: None }
}

fn strictly(history: &[Operation]) -> bool {
    is_linearizable(history, Holding::UntilReplaced)
}

#[test]
fn a_pauser_that_is_refused_after_another_was_granted_is_fine() {
    assert!(strictly(&[
        asked(Asked::Claim, 0, 1, Told::Granted(token(1))),
        asked(Asked::Claim, 2, 3, Told::Granted(token(2))),
        asked(Asked::Complete(token(2)), 4, 6, Told::Completed(token(2))),
        asked(Asked::Complete(token(1)), 5, 7, Told::Stale),
    ]));
}

#[test]
fn a_commit_by_a_replaced_token_is_noticed() {
    assert!(!strictly(&[
        asked(Asked::Claim, 0, 1, Told::Granted(token(1))),
        asked(Asked::Claim, 2, 3, Told::Granted(token(2))),
        asked(Asked::Complete(token(1)), 4, 5, Told::Completed(token(1))),
    ]));
}

#[test]
fn the_same_commit_is_fine_while_the_grant_was_not_answered() {
    assert!(strictly(&[
        asked(Asked::Claim, 0, 1, Told::Granted(token(1))),
        asked(Asked::Complete(token(1)), 2, 5, Told::Completed(token(1))),
        unheard(Asked::Claim, 3),
    ]));
}

#[test]
fn a_grant_after_an_acknowledged_completion_is_noticed() {
    assert!(!strictly(&[
        asked(Asked::Claim, 0, 1, Told::Granted(token(1))),
        asked(Asked::Complete(token(1)), 2, 3, Told::Completed(token(1))),
        asked(Asked::Claim, 4, 5, Told::Granted(token(2))),
    ]));
}

#[test]
fn a_token_that_does_not_rise_is_noticed() {
    assert!(!strictly(&[
        asked(Asked::Claim, 0, 1, Told::Granted(token(2))),
        asked(Asked::Claim, 2, 3, Told::Granted(token(1))),
    ]));
}

#[test]
fn a_holder_is_refused_only_when_somebody_may_have_replaced_it() {
    let refused = [
        asked(Asked::Claim, 0, 1, Told::Granted(token(1))),
        asked(Asked::Complete(token(1)), 2, 3, Told::Stale),
    ];
    assert!(!strictly(&refused));
    assert!(is_linearizable(&refused, Holding::MayBeTaken));
    let [granted, refused] = refused;
    assert!(strictly(&[granted, unheard(Asked::Claim, 1), refused]));
}

#[test]
fn nothing_is_to_be_had_only_while_somebody_has_it() {
    assert!(!strictly(&[asked(Asked::Claim, 0, 1, Told::Nothing)]));
    assert!(strictly(&[
        asked(Asked::Claim, 0, 2, Told::Granted(token(1))),
        asked(Asked::Claim, 1, 3, Told::Nothing),
        asked(Asked::GiveBack(token(1)), 4, 5, Told::GivenBack),
        asked(Asked::GiveBack(token(1)), 6, 7, Told::GivenBack),
        asked(Asked::Claim, 8, 9, Told::Granted(token(3))),
    ]));
}

#[test]
fn an_unheard_commit_may_have_been_done() {
    assert!(strictly(&[
        asked(Asked::Claim, 0, 1, Told::Granted(token(1))),
        unheard(Asked::Complete(token(1)), 2),
        asked(Asked::Claim, 3, 4, Told::Nothing),
    ]));
}
