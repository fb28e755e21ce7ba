//! Holders that went on without a lease, fell silent, or got stuck.

use super::*;

#[test]
fn going_on_after_a_failed_renewal_is_told_even_if_nobody_was_harmed() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         20 a renew_failed
         30 a renew_failed
         45 a progress
         60 a effect kind=write
         60.1 a completed
         60.2 a released",
    );
    assert_eq!(told(&findings), ["renewal_ignored a renewal_ignored"]);
}

#[test]
fn a_failed_renewal_that_then_succeeds_is_no_finding() {
    quiet(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         20 a renew_failed detail=timeout
         22 a renewed ttl=30
         30 a progress
         32 a renewed ttl=30
         55 a effect kind=write
         56 a completed
         57 a released",
    );
}

#[test]
fn a_crash_under_a_lock_without_expiry_stalls_the_job() {
    let mut history = String::from(
        "0 a acquired
         5 a progress
         10 a progress
         15 a progress\n",
    );
    for minute in 1..30 {
        history.push_str(&format!("{} b requested\n{}.05 b denied\n", minute * 60, minute * 60));
    }
    let findings = diagnose(&history);
    assert_eq!(told(&findings), ["stall a crash"]);
    let stall = &findings.findings[0];
    assert_eq!(stall.cost_ms, 15_000);
    assert!(stall.headline.contains("denied 29 times"), "{}", stall.headline);
}

#[test]
fn a_lease_that_the_service_does_not_let_go_stalls_the_job() {
    let mut history = String::from(
        "0 a acquired ttl=30
         5 a progress
         10 a progress
         15 a progress\n",
    );
    for minute in 1..10 {
        history.push_str(&format!("{} b requested\n{}.05 b denied\n", minute * 60, minute * 60));
    }
    history.push_str("600 b acquired ttl=30\n605 b progress\n610 b effect\n611 b completed\n");
    assert_eq!(told(&diagnose(&history)), ["stall a crash"]);
}

#[test]
fn an_exit_without_a_release_stalls_a_lock_without_expiry_for_certain() {
    let findings = diagnose(
        "0 a acquired
         5 a progress
         6 a exited detail=signal-9
         60 b requested
         60.1 b denied
         120 b requested
         120.1 b denied",
    );
    assert_eq!(told(&findings), ["stall a crash"]);
    assert_eq!(findings.findings[0].confidence, Confidence::Certain);
}

#[test]
fn renewals_without_work_are_a_stuck_holder() {
    let mut history = String::from("0 a acquired ttl=30\n");
    for second in 1..=10 {
        history.push_str(&format!("{} a progress\n", second * 2));
    }
    for renewal in 3..60 {
        history.push_str(&format!("{} a renewed ttl=30\n", renewal * 10));
        history.push_str(&format!("{}.5 b denied\n", renewal * 10));
    }
    assert_eq!(told(&diagnose(&history)), ["stall a stuck"]);
}

#[test]
fn denials_after_the_holder_was_through_mean_a_lock_that_was_never_given_up() {
    let findings = diagnose(
        "0 a acquired
         5 a effect kind=write
         6 a completed
         60 b denied
         120 b denied
         180 b denied
         240 b denied",
    );
    assert_eq!(told(&findings), ["stall a unknown"]);
}

#[test]
fn denials_by_a_holder_that_was_never_seen_are_a_stall() {
    let mut history = String::new();
    for minute in 0..30 {
        history.push_str(&format!("{} b requested\n{}.1 b denied\n", minute * 60, minute * 60));
    }
    assert_eq!(told(&diagnose(&history)), ["stall  unknown"]);
}

#[test]
fn a_request_that_nobody_answers_is_a_stall_if_nobody_holds_it() {
    let findings = diagnose(
        "0 a acquired ttl=30
         5 a effect
         6 a completed
         7 a released
         20 b requested
         30 c acquired ttl=30 on=other
         31 c completed on=other
         1000 c acquired ttl=30 on=other
         1001 c completed on=other",
    );
    assert_eq!(told(&findings), ["stall b unknown"]);
}

#[test]
fn work_that_nobody_took_up_is_lost() {
    let mut history = String::from(
        "0 a acquired ttl=30
         5 a progress
         10 a progress
         15 a progress\n",
    );
    for job in 0..10 {
        let start = 20 + job * 60;
        history.push_str(&format!(
            "{start} b acquired ttl=30 on=j{job}\n{} b progress on=j{job}\n\
             {} b effect on=j{job}\n{} b completed on=j{job}\n{} b released on=j{job}\n",
            start + 5,
            start + 10,
            start + 11,
            start + 12
        ));
    }
    assert_eq!(told(&diagnose(&history)), ["lost_work a crash"]);
}

#[test]
fn work_that_became_free_a_moment_ago_is_not_lost_yet() {
    let history = |end: u64| {
        format!(
            "0 a acquired ttl=30
             5 a progress
             10 a exited
             20 b acquired ttl=30 on=other
             25 b effect on=other
             26 b completed on=other
             {end} b released on=other"
        )
    };
    quiet(&history(140));
    assert_eq!(told(&diagnose(&history(200))), ["lost_work a crash"]);
}
