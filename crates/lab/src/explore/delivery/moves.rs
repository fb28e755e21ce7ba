//! What jobs do that somebody is to be told of.

use std::rc::Rc;

use palisade_core::{
    Timestamp,
    job::{Failure as Report, FailureKind},
    outbox::TRIES_MAX,
};
use palisade_store::command::{Answer, Command, Fail, Retry};

use crate::engine::{CrashEngine, Engine};

use super::bench;

/// How many tries of each row are used up already, so that a small world sees the last.
const TRIES_USED: u32 = TRIES_MAX - 2;
/// A move of a job to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::explore) enum Move {
    /// The first job fails for good.
    Fails,
    /// It is tried again, and completed.
    Completes,
    /// Another job is completed.
    Other,
}

/// Runs what leads to a move, all of it in one transaction.
pub(super) fn decide(engine: &mut CrashEngine, what: Move, now: Timestamp) {
    let (rendering, claim) = match what {
        Move::Fails => (0, 1),
        Move::Completes => (0, 2),
        Move::Other => (1, 3),
    };
    let submit = bench::submit(rendering, &format!("r{rendering}"));
    let Ok(Answer::Submit(submitted)) = engine.apply(&submit, now) else { return };
    let job = submitted.job;
    if what == Move::Completes {
        let retry = Retry { job, submission: None, request_id: None };
        engine.apply(&Command::Retry(retry), now).expect("a failed job can be tried again");
    }
    let claim = engine.apply(&Command::Claim(bench::claim(0, claim, 0)), now);
    let Ok(Answer::Claim(claimed)) = claim else { return };
    let pair = claimed.grants[0].pair;
    let report = if what == Move::Fails {
        let (reason, message) = ("bad_input".to_owned(), "it is damaged".to_owned());
        let failure = Report { reason, message, kind: FailureKind::Final };
        Command::Fail(Fail { job, pair, failure, chance: 0 })
    } else {
        bench::complete(job, pair, bench::content_of(0))
    };
    engine.apply(&report, now).expect("its attempt is open");
    for row in engine.live.outbox.values_mut().filter(|row| row.tries == 0) {
        Rc::make_mut(row).tries = TRIES_USED;
    }
}
