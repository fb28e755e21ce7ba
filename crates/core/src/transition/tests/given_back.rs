//! What a release does.

use super::scene::{check, check_with};
use crate::retry::RetryPolicy;

#[test]
fn a_release_queues_the_job_at_once_and_counts_for_nothing() {
    check(&[
        ("a claims", "granted 2"),
        ("a releases", "queued"),
        ("job", "queued, fence 3"),
        ("b claims", "granted 3"),
    ]);
}

#[test]
fn a_release_whose_reply_was_lost_is_answered_again() {
    check(&[
        ("a claims", "granted 2"),
        ("a releases", "queued"),
        ("b claims", "granted 3"),
        ("a releases", "queued"),
        ("job", "running, fence 3, open 3"),
        ("b completes", "complete by 3"),
        ("a releases", "queued"),
        ("a completes", "stale_token: released, fence 4, completed by 3"),
    ]);
}

#[test]
fn a_job_can_be_released_for_ever() {
    let once = RetryPolicy { failures_allowed: 1, losses_allowed: 0, ..RetryPolicy::default() };
    let mut lines = Vec::new();
    let granted: Vec<_> = (2..50).map(|token| format!("granted {token}")).collect();
    for granted in &granted {
        lines.extend([("a claims", granted.as_str()), ("a releases", "queued")]);
    }
    lines.push(("job", "queued, fence 50"));
    check_with(once, &lines);
}

#[test]
fn a_release_does_not_forgive_failures() {
    check(&[
        ("a claims", "granted 2"),
        ("a fails", "queued in 2500 ms"),
        ("wait 2500", ""),
        ("a claims", "granted 3"),
        ("a releases", "queued"),
        ("job", "queued, fence 4, 1 failed"),
    ]);
}

#[test]
fn a_stranger_releases_nothing() {
    check(&[
        ("a claims", "granted 2"),
        ("x releases as a", "unknown_token"),
        ("b claims", "nothing"),
    ]);
}
