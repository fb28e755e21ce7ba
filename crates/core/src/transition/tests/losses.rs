//! What is lost, and when a job is given up for it.

use super::scene::{check, check_with, check_with_backup};
use crate::retry::RetryPolicy;

const LOST_TWICE: &str = "failed, fence 4, 2 lost, lost_repeatedly: its worker was lost 2 times, \
     1 losses are allowed; the job may be killing its workers";

fn losses_allowed(losses_allowed: u32) -> RetryPolicy {
    RetryPolicy { losses_allowed, ..RetryPolicy::default() }
}

#[test]
fn one_loss_more_than_allowed_makes_the_job_failed_by_the_claim() {
    check_with(
        losses_allowed(1),
        &[
            ("a claims", "granted 2"),
            ("wait 30030", ""),
            ("b claims", "granted 3"),
            ("wait 30030", ""),
            ("c claims", "given up"),
            ("job", LOST_TWICE),
            ("b completes", "stale_token: superseded, fence 4"),
            ("b beats", "lost: superseded, fence 4"),
        ],
    );
}

#[test]
fn a_tick_gives_up_where_nobody_claims_and_does_nothing_else() {
    check_with(
        losses_allowed(1),
        &[
            ("tick", "nothing"),
            ("a claims", "granted 2"),
            ("wait 30030", ""),
            ("tick", "nothing"),
            ("job", "running, fence 2, open 2"),
            ("b claims", "granted 3"),
            ("wait 30029", ""),
            ("tick", "nothing"),
            ("wait 1", ""),
            ("tick", "given up"),
            ("job", LOST_TWICE),
            ("tick", "nothing"),
        ],
    );
}

#[test]
fn no_losses_allowed_fails_at_the_first() {
    check_with(
        losses_allowed(0),
        &[
            ("a claims", "granted 2"),
            ("wait 30029", ""),
            ("tick", "nothing"),
            ("wait 1", ""),
            ("tick", "given up"),
        ],
    );
}

#[test]
fn a_worker_that_comes_back_on_its_last_chance_may_still_complete() {
    check_with(
        losses_allowed(0),
        &[
            ("a claims", "granted 2"),
            ("wait 99999", ""),
            ("a beats", "held"),
            ("tick", "nothing"),
            ("wait 99999", ""),
            ("a completes", "complete by 2"),
            ("tick", "nothing"),
        ],
    );
}

#[test]
fn losses_do_not_use_up_the_failures_nor_failures_the_losses() {
    let policy = RetryPolicy { failures_allowed: 2, losses_allowed: 1, ..RetryPolicy::default() };
    check_with(
        policy,
        &[
            ("a claims", "granted 2"),
            ("wait 30030", ""),
            ("b claims", "granted 3"),
            ("b fails", "queued in 2500 ms"),
            ("wait 2500", ""),
            ("job", "queued, fence 4, 1 failed, 1 lost"),
            ("c claims", "granted 4"),
            ("c completes", "complete by 4"),
        ],
    );
}

#[test]
fn attempts_lost_together_are_one_loss() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("wait 30030", ""),
            ("c claims", "granted 4"),
            ("job", "running, fence 4, open 4, 1 lost"),
        ],
    );
}

#[test]
fn a_suspected_worker_is_replaced_at_once_unless_it_renews() {
    check(&[
        ("a claims", "granted 2"),
        ("wait 1", ""),
        ("suspect a", ""),
        ("b claims", "granted 3"),
        ("a completes", "stale_token: superseded, fence 3"),
    ]);
    check(&[
        ("a claims", "granted 2"),
        ("wait 1", ""),
        ("suspect a", ""),
        ("a beats", "held"),
        ("b claims", "nothing"),
    ]);
}

#[test]
fn a_restart_gives_the_living_a_whole_ttl() {
    check(&[
        ("a claims", "granted 2"),
        ("wait 29000", ""),
        ("restart after 3600000", ""),
        ("wait 30029", ""),
        ("b claims", "nothing"),
        ("a beats", "held"),
    ]);
}

#[test]
fn a_second_restart_gives_the_silent_no_more_than_was_left() {
    check(&[
        ("a claims", "granted 2"),
        ("wait 29000", ""),
        ("restart after 3600000", ""),
        ("wait 20000", ""),
        ("restart after 3600000", ""),
        ("wait 10029", ""),
        ("b claims", "nothing"),
        ("wait 1", ""),
        ("b claims", "granted 4"),
    ]);
}
