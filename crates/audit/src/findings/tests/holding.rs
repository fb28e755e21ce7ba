//! Recoveries, repeated work, tokens, and histories told in odd ways.

use super::*;

#[test]
fn a_recovered_crash_is_counted_and_is_no_finding() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         40.5 b acquired ttl=30
         50 b renewed ttl=30
         55 b effect kind=write
         56 b completed
         57 b released",
    );
    assert_eq!(told(&findings), Vec::<String>::new());
    assert_eq!(findings.summary.recoveries.count(), 1);
    assert_eq!(findings.summary.recoveries.quantile_ms(50), Some(30_500));
}

#[test]
fn a_crash_after_the_effect_makes_the_next_attempt_a_duplicate() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         12 a effect kind=write detail=x.mp4
         40.5 b acquired ttl=30
         50 b renewed ttl=30
         55 b effect kind=write detail=x.mp4
         56 b completed
         57 b released",
    );
    assert_eq!(told(&findings), ["duplicate_effect a,b crash"]);
    assert!(findings.findings[0].cost_ms > 0);
}

#[test]
fn going_on_from_what_a_crash_left_is_no_duplicate() {
    quiet(
        "0 a acquired ttl=30
         10 a effect kind=write detail=part1
         12 a effect kind=write detail=part2
         42.5 b acquired ttl=30
         50 b effect kind=write detail=part3
         56 b completed
         57 b released",
    );
}

#[test]
fn the_next_piece_of_work_under_the_same_lock_is_no_duplicate() {
    quiet(
        "0 a acquired ttl=30
         5 a effect kind=write
         6 a completed
         7 a released
         8 b acquired ttl=30
         9 b effect kind=write
         10 b completed
         11 b released
         12 a acquired ttl=30
         13 a effect kind=write
         14 a released",
    );
}

#[test]
fn a_zombie_of_yesterdays_work_is_told_from_todays_holder() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         40.5 b acquired ttl=30
         50 b renewed ttl=30
         55 b effect kind=write
         56 b completed
         57 b released
         100 c acquired ttl=30
         110 c renewed ttl=30
         115 a effect kind=write
         120 c effect kind=write
         121 c completed
         122 c released",
    );
    has(&findings, "pause a pause");
    has(&findings, "late_effect a pause");
    has(&findings, "duplicate_effect b,a pause");
    assert!(!told(&findings).iter().any(|line| line.contains("overlap a,b")));
}

#[test]
fn a_token_that_starts_again_is_a_regression() {
    let findings = diagnose(
        "0 a acquired ttl=30 token=41
         5 a completed
         6 a released
         10 b acquired ttl=30 token=1
         15 b completed
         16 b released",
    );
    assert_eq!(told(&findings), ["token_regression b,a unknown"]);
}

#[test]
fn a_token_that_starts_again_after_a_long_rest_is_a_regression_too() {
    let mut history = String::from("0 a acquired ttl=30 token=41\n5 a completed\n6 a released\n");
    // Enough of other matters for the resource to be forgotten in between.
    for job in 0..70_000 {
        let at = f64::from(job) / 20.0 + 10.0;
        history.push_str(&format!("{at} w acquired on=j{job} ttl=5\n{at} w released on=j{job}\n"));
    }
    history.push_str("4000 b acquired ttl=30 token=1\n4005 b completed\n4006 b released\n");
    assert_eq!(told(&diagnose(&history)), ["token_regression b unknown"]);
}

#[test]
fn a_repeated_grant_to_its_holder_is_no_regression_and_no_lost_grant() {
    quiet(
        "0 a acquired ttl=30 token=41
         0.5 a acquired ttl=30 token=41
         10 a renewed ttl=30
         20 a effect kind=write token=41
         21 a completed
         22 a released",
    );
}

#[test]
fn a_handover_that_is_logged_a_little_late_is_no_finding() {
    quiet(
        "0 a acquired ttl=30
         5 a effect kind=write
         6 b acquired ttl=30
         6.05 a completed
         6.1 a released
         10 b effect kind=write
         11 b completed
         12 b released",
    );
}

#[test]
fn a_waiter_that_was_denied_and_calls_its_errand_done_is_no_finding() {
    quiet(
        "0 b started
         0 a acquired ttl=30
         1 b requested
         1.1 b denied
         1.2 b completed
         5 a progress
         8 a effect kind=write
         9 a completed
         10 a released",
    );
}

#[test]
fn entries_in_any_order_tell_the_same() {
    let lines = [
        "0 a acquired ttl=30",
        "10 a renewed ttl=30",
        "40.2 b acquired ttl=30",
        "50 b renewed ttl=30",
        "61 a progress",
        "62 a effect kind=write",
        "65 b effect kind=write",
        "66 b completed",
    ];
    let mut shuffled = lines;
    shuffled.sort_by_key(|line| line.split_whitespace().nth(1));
    shuffled.reverse();
    let (straight, mixed) = (diagnose(&lines.join("\n")), diagnose(&shuffled.join("\n")));
    assert_eq!(told(&straight), told(&mixed));
    assert!(told(&straight).len() >= 4);
}

#[test]
fn an_exit_that_names_no_resource_ends_all_that_the_worker_had() {
    let findings = diagnose(
        "0 a acquired on=one
         1 a acquired on=two
         5 a exited on=
         60 b denied on=one
         60 b denied on=two
         120 b denied on=one",
    );
    let kinds: Vec<&str> = findings.findings.iter().map(|f| f.resource.as_str()).collect();
    assert_eq!(kinds, ["one", "two"], "{:#?}", told(&findings));
}

#[test]
fn a_worker_that_speaks_elsewhere_all_the_while_is_stuck_and_not_dead() {
    let mut history = String::from("0 a acquired\n5 a progress\n10 a progress\n15 a progress\n");
    for second in (20..2_000).step_by(5) {
        history.push_str(&format!("{second} a progress on=other\n"));
        if second % 60 == 0 {
            history.push_str(&format!("{second}.5 b denied\n"));
        }
    }
    has(&diagnose(&history), "stall a stuck");
}

#[test]
fn every_finding_has_evidence_a_story_and_one_marked_mistake() {
    let findings = diagnose(
        "0 a acquired ttl=10
         2 a progress
         4 a progress
         30 b acquired ttl=30
         34 b progress
         35 a effect kind=write
         35.1 a released
         36 c acquired ttl=30
         38 b progress
         44 b effect kind=write
         44.1 b completed
         48 c effect kind=write
         48.1 c completed",
    );
    assert!(findings.findings.len() >= 6, "{:#?}", told(&findings));
    for finding in &findings.findings {
        let marked = finding.story.iter().filter(|line| line.mistake).count();
        assert_eq!(marked, 1, "{finding:#?}");
        assert!(!finding.evidence().is_empty());
        assert!(finding.story.is_sorted_by_key(|line| line.at), "{finding:#?}");
        assert!(finding.at <= finding.until);
        assert!(!finding.prevented_by.is_empty());
    }
}

#[test]
fn a_leader_that_writes_again_and_again_is_followed_by_another_without_a_duplicate() {
    quiet(
        "0 a acquired ttl=15
         5 a effect kind=reconcile
         10 a renewed ttl=15
         11 a effect kind=reconcile
         26 b acquired ttl=15
         30 b effect kind=reconcile
         35 b effect kind=reconcile
         36 b completed
         37 b released",
    );
}
