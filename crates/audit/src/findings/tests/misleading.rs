//! Logs of kinds that once misled the analysis: late lines, doubtful clocks, quiet workers.

use super::*;

#[test]
fn a_release_that_is_logged_just_after_the_next_grant_is_the_last_holders_own() {
    let history = |late_s: &str| {
        format!(
            "0 a acquired ttl=30
             5 a effect kind=write
             5.1 a completed
             5.3 b acquired ttl=30
             {late_s} a released
             8 b progress
             9 b effect kind=write
             9.1 b completed
             9.2 b released"
        )
    };
    quiet(&history("5.32"));
    assert_eq!(told(&diagnose(&history("6"))), ["foreign_release a,b foreign_release"]);
}

#[test]
fn what_rests_on_clocks_that_contradict_each_other_is_only_possible() {
    let history = "0 a acquired ttl=60 file=0
         8 a progress file=0
         11 b acquired ttl=60 file=1
         16 a progress file=0
         24 b progress file=1
         40 a completed file=0
         47 b completed file=1";
    let doubtful = Settings { doubtful: vec![false, true], ..Settings::default() };
    let doubted = diagnose_with(doubtful, history);
    let sure = diagnose(history);
    assert_eq!(told(&doubted), told(&sure));
    assert!(sure.findings.iter().all(|finding| finding.confidence == Confidence::Certain));
    assert!(doubted.findings.iter().all(|finding| finding.confidence == Confidence::Possible));
}

#[test]
fn a_worker_whose_log_has_nothing_between_beginning_and_end_was_not_seen_to_stand_still() {
    let history = "0 a acquired ttl=3600
         0.1 a started
         3601 b acquired ttl=3600
         3601.1 b started
         4000 a effect kind=completion
         4000 a completed
         7300 b effect kind=completion
         7300 b completed";
    let quiet = Settings { silence_says_nothing: true, ..Settings::default() };
    let expected = ["overlap a,b unknown", "late_effect a unknown", "duplicate_effect a,b unknown"];
    assert_eq!(told(&diagnose_with(quiet, history)), expected);
    let pause = diagnose(history);
    has(&pause, "pause a pause");
    let pause = pause.findings.iter().find(|finding| finding.kind == Kind::Pause).unwrap();
    assert_eq!(pause.confidence, Confidence::Possible, "it never spoke while it worked");
}

#[test]
fn a_lock_of_the_dead_that_nobody_asked_for_until_it_was_granted_stalled_nobody() {
    // The service notices that the lease is over when somebody asks.
    quiet(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         600 b denied
         600.1 b acquired ttl=30
         605 b effect
         606 b completed
         606.1 b released",
    );
    let kept_waiting = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         60 b denied
         90 b denied
         120 b acquired ttl=30
         125 b effect
         126 b completed
         126.1 b released",
    );
    assert_eq!(told(&kept_waiting), ["stall a crash"]);
}

#[test]
fn a_pause_is_as_long_as_the_silence_even_where_the_lease_ran_out_in_it() {
    let findings = diagnose(
        "0 a acquired ttl=30
         10 a renewed ttl=30
         40 a expired
         41 b acquired ttl=30
         51 b renewed ttl=30
         60 a refused kind=write
         62 b effect kind=write
         63 b completed",
    );
    let pause = findings.findings.iter().find(|finding| finding.kind == Kind::Pause).unwrap();
    assert!(pause.headline.contains("for 50 s"), "{}", pause.headline);
}

#[test]
fn a_worker_that_was_started_again_under_its_name_is_told_from_its_past_self_by_the_token() {
    let history = |outcome: &str| {
        format!(
            "0 w acquired ttl=30 token=1
             10 w renewed ttl=30
             41 w acquired ttl=30 token=2
             50 w renewed ttl=30
             55 w {outcome} kind=write token=1
             60 w renewed ttl=30
             65 w effect kind=write token=2
             66 w completed
             66.1 w released"
        )
    };
    let refused = diagnose(&history("refused"));
    assert_eq!(told(&refused), ["late_effect w unknown"]);
    assert_eq!(refused.findings[0].landed, Some(false));
    let landed = diagnose(&history("effect"));
    assert_eq!(told(&landed), ["late_effect w unknown", "duplicate_effect w unknown"]);
    // Who asks anew while it holds, and gets a new number each time, is not its own past.
    quiet(
        "0 w acquired ttl=30 token=1
         10 w acquired ttl=30 token=2
         15 w effect kind=write token=1
         16 w completed
         16.1 w released",
    );
}
