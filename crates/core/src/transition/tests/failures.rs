//! What a reported failure does.

use super::scene::{check, check_with};
use crate::retry::RetryPolicy;

fn failures_allowed(failures_allowed: u32) -> RetryPolicy {
    RetryPolicy { failures_allowed, ..RetryPolicy::default() }
}

#[test]
fn a_failure_queues_the_job_after_a_wait_that_doubles() {
    check(&[
        ("a claims", "granted 2"),
        ("a fails", "queued in 2500 ms"),
        ("job", "queued, fence 3, 1 failed"),
        ("wait 2500", ""),
        ("a claims", "granted 3"),
        ("a fails", "queued in 5000 ms"),
    ]);
}

#[test]
fn the_last_failure_allowed_makes_the_job_failed_with_its_words() {
    check_with(
        failures_allowed(2),
        &[
            ("a claims", "granted 2"),
            ("a fails", "queued in 2500 ms"),
            ("wait 2500", ""),
            ("b claims", "granted 3"),
            ("b fails", "failed"),
            ("job", "failed, fence 4, 2 failed, tool_failed: token 3 says so"),
        ],
    );
    check_with(failures_allowed(1), &[("a claims", "granted 2"), ("a fails", "failed")]);
}

#[test]
fn a_final_failure_burns_no_retries() {
    check(&[
        ("a claims", "granted 2"),
        ("a fails finally", "failed"),
        ("job", "failed, fence 3, 1 failed, bad_input: token 2 says so"),
    ]);
}

#[test]
fn a_fail_whose_reply_was_lost_is_answered_again_and_counted_once() {
    check(&[
        ("a claims", "granted 2"),
        ("a fails", "queued in 2500 ms"),
        ("a fails", "queued in 2500 ms"),
        // Whatever it says the second time.
        ("a fails finally", "queued in 2500 ms"),
        ("job", "queued, fence 3, 1 failed"),
        ("wait 2500", ""),
        ("b claims", "granted 3"),
        ("a fails", "queued"),
        ("job", "running, fence 3, open 3, 1 failed"),
    ]);
}

#[test]
fn a_fail_after_the_deadline_counts_as_long_as_nobody_has_replaced_it() {
    check(&[
        ("a claims", "granted 2"),
        ("wait 90000", ""),
        ("a fails", "queued in 2500 ms"),
        ("job", "queued, fence 3, 1 failed"),
    ]);
    check(&[
        ("a claims", "granted 2"),
        ("wait 90000", ""),
        ("b claims", "granted 3"),
        ("a fails finally", "stale_token: superseded, fence 3"),
        ("job", "running, fence 3, open 3, 1 lost"),
    ]);
}

#[test]
fn no_failures_allowed_is_as_one_allowed() {
    check_with(
        failures_allowed(0),
        &[
            ("a claims", "granted 2"),
            ("a releases", "queued"),
            ("a claims", "granted 3"),
            ("a fails", "failed"),
            ("job", "failed, fence 4, 1 failed, tool_failed: token 3 says so"),
        ],
    );
}

#[test]
fn a_strangers_failure_counts_for_nothing() {
    check(&[
        ("a claims", "granted 2"),
        ("x fails finally as a", "unknown_token"),
        ("job", "running, fence 2, open 2"),
    ]);
}
