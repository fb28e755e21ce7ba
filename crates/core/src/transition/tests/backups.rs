//! A second attempt beside a live one.

use super::scene::{check, check_with_backup};

#[test]
fn there_is_no_backup_unless_asked_for() {
    check(&[("a claims", "granted 2"), ("wait 30029", ""), ("b claims", "nothing")]);
}

#[test]
fn a_backup_closes_nothing_and_raises_no_fence() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 999", ""),
            ("b claims", "nothing"),
            ("wait 1", ""),
            ("b claims", "granted 4"),
            ("job", "running, fence 2, open 2 4"),
            ("a beats", "held"),
            ("b beats", "held"),
        ],
    );
}

#[test]
fn there_is_one_backup_and_it_is_another_sessions() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("a claims", "nothing"),
            ("b claims", "granted 4"),
            ("wait 1000", ""),
            ("c claims", "nothing"),
        ],
    );
}

#[test]
fn whichever_completes_first_outruns_the_other() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("a completes", "complete by 2"),
            ("job", "complete, fence 4, completed by 2, one outrun"),
            ("b completes", "already_complete by 2"),
            ("b fails", "already_complete by 2"),
            ("b beats", "lost: outrun, fence 4, completed by 2"),
            ("a completes", "complete by 2"),
        ],
    );
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("b completes", "complete by 3"),
            ("a completes", "already_complete by 3"),
            ("b completes", "complete by 3"),
        ],
    );
}

#[test]
fn while_another_is_open_a_failure_or_a_release_leaves_the_job_running() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("a fails", "running"),
            ("job", "running, fence 2, open 3, 1 failed"),
            ("b releases", "queued"),
            ("job", "queued, fence 4, 1 failed"),
            ("a fails", "running"),
        ],
    );
}

#[test]
fn a_final_failure_beside_an_open_attempt_decides_once_that_one_is_given_back() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("a fails finally", "running"),
            ("b releases", "failed"),
            ("job", "failed, fence 4, 1 failed, bad_input: token 2 says so"),
        ],
    );
}

#[test]
fn a_final_failure_beside_an_open_attempt_does_not_keep_that_one_from_completing() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("a fails finally", "running"),
            ("b completes", "complete by 3"),
        ],
    );
}

#[test]
fn a_final_failure_beside_a_lost_attempt_decides_by_claim_and_by_tick() {
    for (line, told) in [("c claims", "given up"), ("tick", "given up")] {
        check_with_backup(
            1_000,
            &[
                ("a claims", "granted 2"),
                ("wait 1000", ""),
                ("b claims", "granted 3"),
                ("a fails finally", "running"),
                ("wait 30030", ""),
                (line, told),
                ("job", "failed, fence 4, 1 failed, 1 lost, bad_input: token 2 says so"),
            ],
        );
    }
}

#[test]
fn there_is_no_backup_after_a_final_failure() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("b fails finally", "running"),
            ("wait 10000", ""),
            ("c claims", "nothing"),
        ],
    );
}

#[test]
fn backups_that_fail_wait_for_their_turn_and_are_counted() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("b fails", "running"),
            ("b claims", "nothing"),
            ("wait 1000", ""),
            ("b claims", "granted 5"),
            ("b fails", "running"),
            ("wait 1000", ""),
            ("b claims", "granted 6"),
            ("b fails", "running"),
            ("wait 1000", ""),
            ("b claims", "nothing"),
            ("job", "running, fence 2, open 2, 3 failed"),
            ("a fails", "failed"),
            ("job", "failed, fence 7, 4 failed, tool_failed: token 2 says so"),
        ],
    );
}

#[test]
fn the_dead_letter_is_the_failure_that_came_last_and_not_the_newest_tokens() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("b fails finally", "running"),
            ("wait 1", ""),
            ("a fails finally", "failed"),
            ("job", "failed, fence 4, 2 failed, bad_input: token 2 says so"),
        ],
    );
}

#[test]
fn a_job_is_not_lost_while_one_of_two_renews() {
    check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("wait 20000", ""),
            ("b beats", "held"),
            ("wait 20000", ""),
            ("c claims", "nothing"),
            ("a completes", "complete by 2"),
        ],
    );
}
