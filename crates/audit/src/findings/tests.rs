//! Each sort of fault, told by a small history of its own, and its near misses.

use palisade_core::Timestamp;

use super::*;
use crate::{Entry, EventKind, Source};

/// 2026-03-14T09:00:00Z.
const START_MS: u64 = 1_773_478_800_000;

/// Reads `SECONDS WORKER EVENT [key=value…]` lines of one resource, `job` unless `on=` names it.
fn diagnose(history: &str) -> Findings {
    diagnose_with(Settings::default(), history)
}

fn diagnose_with(settings: Settings, history: &str) -> Findings {
    let mut analyser = Analyser::new(settings);
    for (index, line) in history.lines().map(str::trim).enumerate() {
        if line.is_empty() {
            continue;
        }
        let mut words = line.split_whitespace();
        let seconds: f64 = words.next().unwrap().parse().unwrap();
        let worker = words.next().unwrap();
        let event = EventKind::from_word(words.next().unwrap()).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let at = Timestamp(START_MS + (seconds * 1_000.0).round() as u64);
        let mut entry = Entry::new(at, worker, "job", event);
        entry.source = Source { file: 0, line: index as u64 + 1 };
        for word in words {
            let (key, value) = word.split_once('=').unwrap();
            match key {
                "on" => entry.resource = value,
                "ttl" => entry.ttl_ms = Some(value.parse::<u64>().unwrap() * 1_000),
                "token" => entry.token = Some(value.parse().unwrap()),
                "kind" => entry.kind = Some(value),
                "detail" => entry.detail = Some(value),
                "for" => entry.duration_ms = Some(value.parse::<u64>().unwrap() * 1_000),
                "file" => entry.source.file = value.parse().unwrap(),
                _ => panic!("unknown key {key}"),
            }
        }
        analyser.push(&entry);
    }
    analyser.finish()
}

/// `kind worker,worker cause` of each finding.
fn told(findings: &Findings) -> Vec<String> {
    let line = |finding: &Finding| {
        let workers = finding.workers.join(",");
        format!("{} {workers} {}", finding.kind.name(), finding.cause.name())
    };
    findings.findings.iter().map(line).collect()
}

fn has(findings: &Findings, expected: &str) {
    let told = told(findings);
    assert!(told.iter().any(|line| line == expected), "no {expected:?} in {told:#?}");
}

fn quiet(history: &str) {
    assert_eq!(told(&diagnose(history)), Vec::<String>::new(), "{history}");
}

#[test]
fn a_pause_past_the_lease_is_told_with_all_that_followed_from_it() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         20 a renewed ttl=30
         50.2 b acquired ttl=30
         60 b renewed ttl=30
         61 a progress
         70 b renewed ttl=30
         75 a effect kind=write
         80 b renewed ttl=30
         85 b effect kind=write
         86 b completed
         87 b released",
    );
    has(&findings, "pause a pause");
    has(&findings, "overlap a,b pause");
    has(&findings, "late_effect a pause");
    has(&findings, "duplicate_effect a,b pause");
    assert_eq!(findings.findings.len(), 4, "{:#?}", told(&findings));
    let pause = findings.findings.iter().find(|finding| finding.kind == Kind::Pause).unwrap();
    assert_eq!(pause.until.since_ms(pause.at), 41_000);
    let mistakes = pause.story.iter().filter(|line| line.mistake).count();
    assert_eq!(mistakes, 1, "{:#?}", pause.story);
}

#[test]
fn a_fenced_store_leaves_a_late_effect_refused_and_nothing_doubled() {
    let findings = diagnose(
        "0 a acquired ttl=30 token=33
         10 a renewed ttl=30
         40.4 b acquired ttl=30 token=34
         50 b renewed ttl=30
         53 a refused kind=write token=33 detail=stale_token
         60 b renewed ttl=30
         65 b effect kind=write token=34
         66 b completed
         67 b released",
    );
    has(&findings, "pause a pause");
    has(&findings, "late_effect a pause");
    let late = findings.findings.iter().find(|finding| finding.kind == Kind::LateEffect).unwrap();
    assert_eq!(late.landed, Some(false));
    assert!(!told(&findings).iter().any(|line| line.starts_with("duplicate_effect")));
    assert_eq!(findings.summary.effects_refused, 1);
}

#[test]
fn a_worker_that_aborts_on_waking_overlaps_with_nobody() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         40.4 b acquired ttl=30
         50 b renewed ttl=30
         53 a renew_failed detail=lost
         53.1 a exited
         60 b renewed ttl=30
         65 b effect kind=write
         66 b completed
         67 b released",
    );
    assert_eq!(told(&findings), ["pause a pause"]);
}

#[test]
fn a_pause_that_the_worker_reports_is_certain() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         40.4 b acquired ttl=30
         52 a paused for=41
         53 a effect kind=write
         65 b effect kind=write
         66 b completed",
    );
    has(&findings, "pause a pause");
    let pause = findings.findings.iter().find(|finding| finding.kind == Kind::Pause).unwrap();
    assert_eq!(pause.confidence, Confidence::Certain);
    has(&findings, "overlap a,b pause");
}

#[test]
fn a_pause_that_cost_nothing_but_ran_past_the_lease_is_told() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         20 a renewed ttl=30
         30 a renewed ttl=30
         90 a renewed ttl=30
         95 a effect kind=write
         96 a completed
         97 a released",
    );
    assert_eq!(told(&findings), ["pause a pause"]);
}

#[test]
fn a_pause_within_the_lease_is_no_finding() {
    quiet(
        "0 a acquired ttl=60
         2 a progress
         4 a progress
         6 a progress
         46 a progress
         47 a renewed ttl=60
         50 a effect kind=write
         51 a completed
         52 a released",
    );
}

#[test]
fn a_holder_that_never_renews_and_works_on_is_no_pause() {
    let findings = diagnose(
        "0 a acquired ttl=10
         3 a progress
         6 a progress
         9 a progress
         10.3 b acquired ttl=10
         12 a progress
         13 b progress
         15 a effect kind=write
         16 a completed
         16 b progress
         19 b effect kind=write
         20 b completed",
    );
    has(&findings, "overlap a,b unknown");
    has(&findings, "duplicate_effect a,b unknown");
    assert!(!told(&findings).iter().any(|line| line.starts_with("pause")));
}

#[test]
fn a_grant_inside_anothers_ttl_was_forgotten_by_the_service() {
    let findings = diagnose(
        "0 a acquired ttl=60
         8 a progress
         11 b acquired ttl=60
         16 a progress
         24 b progress
         40 a effect
         40.2 a completed
         40.3 a released
         47 b effect
         47.1 b completed
         47.2 b released",
    );
    has(&findings, "lost_grant a,b lost_grant");
    has(&findings, "overlap a,b lost_grant");
    has(&findings, "duplicate_effect a,b lost_grant");
    assert_eq!(findings.findings.len(), 3, "{:#?}", told(&findings));
}

#[test]
fn two_grants_at_the_same_moment_are_a_lost_grant() {
    let findings = diagnose(
        "0 a acquired ttl=60
         0.02 b acquired ttl=60
         5 a progress
         6 b progress
         20 a effect kind=write
         20.1 a completed
         25 b effect kind=write
         25.1 b completed",
    );
    has(&findings, "lost_grant a,b lost_grant");
    has(&findings, "overlap a,b lost_grant");
    has(&findings, "duplicate_effect a,b lost_grant");
}

#[test]
fn a_lock_without_ttl_given_away_while_its_holder_works_is_a_possible_lost_grant() {
    let findings = diagnose(
        "0 a acquired
         2 a progress
         4 a progress
         5 b acquired
         6 a progress
         7 b progress
         8 a effect kind=write
         8.1 a completed
         9 b effect kind=write
         9.1 b completed",
    );
    has(&findings, "lost_grant a,b lost_grant");
    has(&findings, "overlap a,b lost_grant");
}

#[test]
fn a_release_by_the_previous_holder_frees_anothers_lock() {
    let findings = diagnose(
        "0 a acquired ttl=10
         2 a progress
         4 a progress
         30 b acquired ttl=30
         32 b progress
         34 b progress
         35 a completed
         35.1 a released
         36 c acquired ttl=30
         38 b progress
         40 c progress
         44 b effect kind=write
         44.1 b completed
         48 c effect kind=write
         48.1 c completed
         48.2 c released",
    );
    has(&findings, "foreign_release a,b foreign_release");
    has(&findings, "overlap b,c foreign_release");
    has(&findings, "pause a pause");
}

#[test]
fn a_release_by_a_stranger_is_foreign_only_if_the_holder_lived() {
    let alive = diagnose(
        "0 a acquired ttl=60
         5 a progress
         10 admin released
         10.5 b acquired ttl=60
         12 a progress
         15 b progress
         20 a effect kind=write
         20.1 a completed
         30 b effect kind=write
         30.1 b completed",
    );
    has(&alive, "foreign_release admin,a foreign_release");
    has(&alive, "overlap a,b foreign_release");
    let dead = diagnose(
        "0 a acquired ttl=600
         5 a progress
         60 admin released
         61 b acquired ttl=60
         65 b progress
         70 b effect kind=write
         70.1 b completed
         70.2 b released",
    );
    assert_eq!(told(&dead), Vec::<String>::new());
    assert_eq!(dead.summary.recoveries.count(), 1);
}

#[test]
fn a_release_that_did_nothing_is_not_foreign() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         40.5 b acquired ttl=30
         50 b renewed ttl=30
         55 a renew_failed detail=lost
         55.1 a released detail=not_held,no-op
         60 b effect kind=write
         60.1 b completed
         60.2 b released",
    );
    assert_eq!(told(&findings), ["pause a pause"]);
}

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
