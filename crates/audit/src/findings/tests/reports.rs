//! Stories that were reported of other systems.

use super::*;

#[test]
fn a_waiters_own_wish_that_expired_takes_nothing_from_the_holder() {
    // The service grants a waiter whose wish is over, and then the next one too.
    let findings = diagnose(
        "0 a acquired ttl=10
         0.5 b requested
         0.7 c requested
         3 a renewed ttl=10
         9 a renewed ttl=10
         11 b expired detail=session
         15 a progress
         17 a effect kind=write
         17.1 a completed
         17.2 a released
         18.3 b acquired ttl=10
         18.5 c acquired ttl=10
         20 b progress
         20.5 c progress
         22 b effect kind=write
         22.1 b completed
         23 c effect kind=write
         23.1 c completed",
    );
    has(&findings, "lost_grant b,c lost_grant");
    has(&findings, "overlap b,c lost_grant");
    has(&findings, "duplicate_effect b,c lost_grant");
    assert_eq!(findings.findings.len(), 3, "{:#?}", told(&findings));
    let given_away = diagnose(
        "0 a acquired ttl=30
         0.5 b requested
         3 a progress
         11 b expired
         12 c acquired ttl=30
         13 a progress
         14 c progress
         20 c completed
         21 a completed",
    );
    has(&given_away, "lost_grant a,c lost_grant");
}

#[test]
fn a_lease_that_is_taken_back_before_its_time_from_one_at_work_is_a_lost_grant() {
    // A leader that had stalled revokes on waking what was renewed meanwhile.
    let findings = diagnose(
        "0 a acquired ttl=10
         3 a renewed ttl=10
         6 a renewed ttl=10
         12 a renewed ttl=10
         13 etcd-0 expired detail=revoked
         13.2 b acquired ttl=10
         14 a progress
         15 a renew_failed detail=not_held
         15.2 a exited
         16 b renewed ttl=10
         20 b effect kind=write
         20.1 b completed
         20.2 b released",
    );
    assert_eq!(told(&findings), ["overlap a,b lost_grant", "lost_grant a,b lost_grant"]);
    let headline = &findings.findings[1].headline;
    assert!(headline.contains("taken back with 8.8 s left"), "{headline}");
}

#[test]
fn a_lease_that_is_taken_back_before_its_time_from_the_dead_is_a_recovery() {
    quiet(
        "0 a acquired ttl=60
         20 a renewed ttl=60
         25 a exited
         26 etcd-0 expired
         26.2 b acquired ttl=60
         40 b effect
         41 b completed
         41.1 b released",
    );
    let findings = diagnose(
        "0 a acquired ttl=60
         20 a renewed ttl=60
         26 etcd-0 expired
         26.2 b acquired ttl=60
         40 b effect
         41 b completed
         41.1 b released",
    );
    assert_eq!(told(&findings), Vec::<String>::new());
    assert_eq!(findings.summary.recoveries.count(), 1);
}

#[test]
fn what_storage_logs_of_its_own_is_laid_to_whoever_holds_the_token() {
    let history = |outcome: &str| {
        format!(
            "0 a acquired ttl=30 token=33
             10 a renewed ttl=30
             40.3 b acquired ttl=30 token=34
             50 b renewed ttl=30
             52 a progress
             55 s3 {outcome} kind=write token=33
             60 b renewed ttl=30
             65 s3 effect kind=write token=34
             66 b completed
             66.1 b released"
        )
    };
    let open = diagnose(&history("effect"));
    has(&open, "late_effect a pause");
    has(&open, "duplicate_effect a,b pause");
    let fenced = diagnose(&history("refused"));
    has(&fenced, "late_effect a pause");
    for findings in [&open, &fenced] {
        assert!(!told(findings).iter().any(|line| line.contains("s3")), "{:#?}", told(findings));
    }
    quiet(
        "0 a acquired ttl=30 token=1
         20 s3 effect kind=write token=1
         21 a completed
         21.1 a released
         22 b acquired ttl=30 token=2
         30 s3 effect kind=write token=2
         31 b completed
         31.1 b released",
    );
}

#[test]
fn a_holder_that_renewed_in_time_and_then_did_not_stood_still_however_slow_its_machine_is() {
    let told_of = |history: &str| {
        let findings = diagnose(history);
        has(&findings, "pause a pause");
        has(&findings, "overlap a,b pause");
        has(&findings, "late_effect a pause");
        assert_eq!(findings.findings.len(), 3, "{:#?}", told(&findings));
    };
    // It starts slowly, and the silence is hardly longer than a stretch of its work.
    told_of(
        "0 a acquired ttl=4
         0 a renewed ttl=4
         3.1 a progress
         3.2 a progress
         4.1 b acquired ttl=4
         5.3 b progress
         7.4 a refused kind=write
         7.6 b renewed ttl=4
         13 b effect kind=write
         13.1 b completed",
    );
    told_of(
        "0 a acquired ttl=4
         2.6 a progress
         3.5 a renewed ttl=4
         4.5 a progress
         7.6 b acquired ttl=4
         8.2 b progress
         8.5 a refused kind=write
         11.1 b renewed ttl=4
         13 b effect kind=write
         13.1 b completed",
    );
}

#[test]
fn a_short_silence_of_one_that_never_renews_did_not_lose_it_the_lease() {
    let findings = diagnose(
        "0 a acquired ttl=10
         2 a progress
         4 a progress
         6 a progress
         10.4 b acquired ttl=30
         11 b progress
         12 a progress
         13 a effect kind=write
         13.1 a completed
         17 b effect kind=write
         17.1 b completed
         17.2 b released",
    );
    has(&findings, "overlap a,b unknown");
    assert!(
        !told(&findings).iter().any(|line| line.starts_with("pause")),
        "{:#?}",
        told(&findings)
    );
}

#[test]
fn a_renewal_on_its_usual_beat_around_a_forgotten_grant_is_no_pause() {
    let findings = diagnose(
        "0 a acquired ttl=30
         15 a renewed ttl=30
         24 b acquired ttl=30
         30.2 a renewed ttl=30
         34 a effect kind=write
         34.1 a completed
         39 b renewed ttl=30
         46 b effect kind=write
         46.1 b completed",
    );
    let kinds: Vec<_> = findings.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&Kind::LostGrant) && !kinds.contains(&Kind::Pause), "{kinds:?}");
}

#[test]
fn a_manager_that_gives_up_a_host_which_still_renders_makes_two_of_one_frame() {
    let findings = diagnose(
        "0 host1 acquired
         10 host1 progress
         70 host1 progress
         130 host1 progress
         190 host1 progress
         200 cuebot expired
         201 host2 acquired
         210 host2 progress
         250 host1 progress
         270 host2 progress
         300 host1 effect kind=write
         301 host1 completed
         330 host2 progress
         360 host2 effect kind=write
         361 host2 completed",
    );
    has(&findings, "overlap host1,host2 unknown");
    has(&findings, "late_effect host1 unknown");
    has(&findings, "duplicate_effect host1,host2 unknown");
    assert_eq!(findings.findings.len(), 3, "{:#?}", told(&findings));
}

#[test]
fn a_lease_of_a_day_behind_which_somebody_died_is_a_stall_where_others_wait() {
    let history = |death: &str, denials: u64, apart_s: u64| {
        let mut lines = format!(
            "0 a acquired ttl=86400\n5 a progress\n10 a progress\n15 a progress\n{death}\n"
        );
        for turn in 1..=denials {
            let at = turn * apart_s;
            lines.push_str(&format!("{at} b requested\n{at}.1 b denied\n"));
        }
        lines
    };
    assert_eq!(told(&diagnose(&history("", 40, 60))), ["stall a crash"]);
    assert_eq!(told(&diagnose(&history("16 a exited", 10, 60))), ["stall a crash"]);
    quiet(&history("", 20, 60));
    quiet(&history("16 a exited", 4, 60));
    quiet(&history("", 1, 7_200));
}

#[test]
fn a_worker_that_restarts_under_its_name_and_takes_its_own_lock_again_is_no_fault() {
    for later_s in [12, 45] {
        let at = |s: u64| later_s + s;
        quiet(&format!(
            "0 a acquired ttl=30
             0.1 a started
             5 a progress
             10 a renewed ttl=30
             {} a acquired ttl=30
             {}.1 a started
             {} a progress
             {} a renewed ttl=30
             {} a effect kind=write
             {} a completed
             {}.1 a released",
            at(0),
            at(0),
            at(3),
            at(10),
            at(15),
            at(16),
            at(16)
        ));
    }
}
