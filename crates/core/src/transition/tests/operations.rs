//! What submitters and operators do: withdraw, retry.

use super::scene::check;

#[test]
fn withdrawing_ones_wish_never_kills_somebody_elses_export() {
    check(&[
        ("submit", "joined 2"),
        ("a claims", "granted 3"),
        ("withdraw 1", "1 withdrawn, running"),
        ("a beats", "held"),
        ("withdraw 2", "1 withdrawn, cancelled"),
        ("a beats", "cancelled"),
        ("job", "cancelled, fence 4"),
        ("a completes", "stale_token: cancelled, fence 4"),
    ]);
}

#[test]
fn an_operator_withdraws_all_at_once() {
    check(&[
        ("submit", "joined 2"),
        ("withdraw all", "2 withdrawn, cancelled"),
        ("withdraw all", "0 withdrawn, cancelled"),
    ]);
}

#[test]
fn a_withdrawal_repeated_does_nothing_a_second_time() {
    check(&[
        ("submit", "joined 2"),
        ("withdraw 1", "1 withdrawn, queued"),
        ("withdraw 1", "0 withdrawn, queued"),
        ("job", "queued, fence 0"),
    ]);
}

#[test]
fn a_submission_that_there_is_not_cannot_be_withdrawn() {
    check(&[("withdraw 7", "not_found"), ("job", "queued, fence 0")]);
}

#[test]
fn withdrawing_from_a_job_that_is_over_undoes_nothing() {
    check(&[
        ("a claims", "granted 2"),
        ("a completes", "complete by 2"),
        ("withdraw 1", "1 withdrawn, complete"),
        ("a completes", "complete by 2"),
        ("submit", "cached 3"),
    ]);
    check(&[
        ("a claims", "granted 2"),
        ("a fails finally", "failed"),
        ("withdraw 1", "1 withdrawn, failed"),
        ("retry", "wrong_state: failed"),
        ("retry 1", "queued"),
    ]);
}

#[test]
fn a_cancelled_job_that_had_a_backup_closes_both() {
    super::scene::check_with_backup(
        1_000,
        &[
            ("a claims", "granted 2"),
            ("wait 1000", ""),
            ("b claims", "granted 3"),
            ("withdraw 1", "1 withdrawn, cancelled"),
            ("job", "cancelled, fence 4"),
            ("a completes", "stale_token: cancelled, fence 4"),
            ("b completes", "stale_token: cancelled, fence 4"),
        ],
    );
}

#[test]
fn a_retry_of_a_failed_job_keeps_its_submissions_and_resets_its_budgets() {
    check(&[
        ("submit", "joined 2"),
        ("a claims", "granted 3"),
        ("a fails finally", "failed"),
        ("retry", "queued"),
        ("job", "queued, fence 4"),
        ("a claims", "granted 4"),
        ("a fails", "queued in 2500 ms"),
        ("job", "queued, fence 5, 1 failed"),
    ]);
}

#[test]
fn a_retry_forgives_losses() {
    let once = crate::retry::RetryPolicy { losses_allowed: 0, ..Default::default() };
    super::scene::check_with(
        once,
        &[
            ("a claims", "granted 2"),
            ("wait 30030", ""),
            ("tick", "given up"),
            ("retry", "queued"),
            ("a claims", "granted 3"),
            ("job", "running, fence 3, open 3"),
        ],
    );
}

#[test]
fn a_retry_of_a_cancelled_job_names_the_submission_and_revives_that_one_alone() {
    check(&[
        ("submit", "joined 2"),
        ("withdraw all", "2 withdrawn, cancelled"),
        ("retry", "wrong_state: cancelled"),
        ("retry 7", "not_found"),
        ("retry 2", "queued"),
        // The other one is still withdrawn: this one was the last.
        ("withdraw 2", "1 withdrawn, cancelled"),
    ]);
}

#[test]
fn a_retry_naming_a_submission_that_was_never_withdrawn_leaves_it_as_it_came() {
    let mut world = super::world::World::new();
    let (id, number, _) = world.submit(0, false);
    let pair = world.claim(id, "a").1.unwrap();
    let kind = crate::job::FailureKind::Final;
    world.say(id, pair, super::world::Verb::Fail { kind, chance: 0 }).unwrap();
    world.retry(id, Some(number)).unwrap();
    assert_eq!(world.job(id).submission(number).unwrap().how, crate::history::Joined::New);
}

#[test]
fn only_what_failed_or_was_cancelled_is_retried() {
    check(&[
        ("retry", "wrong_state: queued"),
        ("retry 1", "wrong_state: queued"),
        ("a claims", "granted 2"),
        ("retry", "wrong_state: running"),
        ("a completes", "complete by 2"),
        ("retry", "already_complete by 2"),
        ("retry 1", "already_complete by 2"),
    ]);
}

#[test]
fn a_retry_is_refused_when_a_newer_job_has_the_key() {
    let mut world = super::world::World::new();
    let (old, number, _) = world.submit(0, false);
    world.cancel(old, crate::transition::Which::All).unwrap();
    let (newer, ..) = world.submit(0, false);
    let refused = world.retry(old, Some(number)).unwrap_err();
    assert_eq!(refused, crate::Refusal::NewerJob { job: newer });
    // Also once that one is over.
    world.cancel(newer, crate::transition::Which::All).unwrap();
    assert_eq!(world.retry(old, Some(number)).unwrap_err(), refused);
    // Another key's job is none of its business.
    let (other, ..) = world.submit(1, false);
    assert!(other > newer);
    let revived = world.job(newer).submissions[0].number;
    world.retry(newer, Some(revived)).unwrap();
}
