//! Leases that went to another while their holders were at work.

use super::*;

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
    // All that a did while it did not stand still, not only what it did beside b.
    let overlap = findings.findings.iter().find(|finding| finding.kind == Kind::Overlap).unwrap();
    assert_eq!(overlap.cost_ms, 34_000);
    assert_eq!(findings.summary.duplicate_ms, 34_000);
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
fn a_release_after_which_the_holder_still_renews_took_nothing_away() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         40.5 b acquired ttl=30
         50 b renewed ttl=30
         55 a effect kind=write
         55.1 a completed
         55.2 a released
         60 b renewed ttl=30
         70 b renewed ttl=30
         75 b effect kind=write
         75.1 b completed
         75.2 b released",
    );
    has(&findings, "overlap a,b pause");
    assert!(!told(&findings).iter().any(|line| line.starts_with("foreign_release")));
}
