//! What the keeper does at each event.

use super::*;

#[test]
fn it_trusts_its_lease_from_before_the_request_was_sent_less_drift_and_margin() {
    let keeper = Keeper::granted(config(), at(1_000), 0, at(4_000), 0);
    assert_eq!(keeper.trusted_until(), at(1_000 + TRUSTED_MS));
    assert!(keeper.may_act(at(4_000)));
}

#[test]
fn what_was_waited_for_at_the_server_does_not_arrive_expired() {
    // Waited 60 s: the server counted the ttl from the grant, less what its clock may run fast.
    let keeper = Keeper::granted(config(), at(0), 60_000, at(60_100), 0);
    assert_eq!(keeper.trusted_until(), at(60_000 - 60 + TRUSTED_MS));
    assert!(keeper.may_act(at(60_100)));
    // A wait of less than the drift is no time gained.
    assert_eq!(Keeper::granted(config(), at(0), 1, at(5), 0).trusted_until(), at(TRUSTED_MS));
}

#[test]
fn a_grant_that_arrives_expired_is_in_doubt_from_the_first_tick() {
    let mut keeper = Keeper::granted(config(), at(0), 0, at(TRUSTED_MS), 0);
    assert!(!keeper.may_act(at(TRUSTED_MS)));
    assert!(keeper.wake_at() <= at(TRUSTED_MS));
    assert_eq!(keeper.tick(at(TRUSTED_MS), 0), [Action::Freeze, Action::Renew]);
}

#[test]
fn it_renews_at_a_third_of_the_ttl_less_jitter() {
    assert_eq!(tick_each_second(&mut keeper(), 1_000, 9_000), []);
    let mut one = keeper();
    tick_each_second(&mut one, 1_000, 9_000);
    assert_eq!(one.tick(at(9_999), 0), []);
    assert_eq!(one.tick(at(10_000), 0), [Action::Renew]);
    // The jitter is at most a tenth of it.
    for chance in [1, 999, 1_000, 1_001, u64::MAX] {
        let keeper = Keeper::granted(config(), at(0), 0, at(0), chance);
        assert_eq!(keeper.renew_at, at(10_000 - chance % 1_001), "{chance}");
    }
}

#[test]
fn a_renewal_that_is_confirmed_prolongs_the_trust_from_when_it_was_sent() {
    let mut keeper = keeper();
    assert_eq!(keeper.confirmed(at(10_000), at(12_000)), []);
    assert_eq!(keeper.trusted_until(), at(10_000 + TRUSTED_MS));
}

#[test]
fn answers_that_overtake_each_other_never_shorten_the_trust() {
    let mut keeper = keeper();
    assert_eq!(keeper.confirmed(at(10_000), at(11_000)), []);
    assert_eq!(keeper.confirmed(at(5_000), at(12_000)), []);
    assert_eq!(keeper.trusted_until(), at(10_000 + TRUSTED_MS));
}

#[test]
fn without_a_confirmation_it_freezes_when_the_trust_ends_and_keeps_asking() {
    let mut keeper = keeper();
    tick_each_second(&mut keeper, 1_000, 28_000);
    assert!(keeper.may_act(at(TRUSTED_MS - 1)));
    assert!(!keeper.may_act(at(TRUSTED_MS)));
    assert_eq!(keeper.wake_at(), at(TRUSTED_MS));
    assert_eq!(keeper.tick(at(TRUSTED_MS), 0), [Action::Freeze, Action::Renew]);
    assert_eq!(keeper.state(), State::Doubt { since: at(TRUSTED_MS) });
    assert!(!keeper.may_act(at(TRUSTED_MS)));
    let asked = tick_each_second(&mut keeper, 29_000, 39_000);
    assert!(asked.iter().all(|(_, action)| *action == Action::Renew));
    assert!(asked.len() >= 5, "in doubt it asks often: {asked:?}");
}

#[test]
fn held_thaws_and_the_work_goes_on() {
    let mut keeper = keeper();
    tick_each_second(&mut keeper, 1_000, 29_000);
    assert_eq!(keeper.confirmed(at(29_000), at(29_500)), [Action::Thaw]);
    assert_eq!(keeper.state(), State::Held);
    assert!(keeper.may_act(at(29_500)));
    assert_eq!(keeper.confirmed(at(29_100), at(29_600)), [], "thawed once");
}

#[test]
fn an_answer_that_was_on_its_way_when_doubt_began_thaws_if_its_trust_is_not_over() {
    let mut keeper = keeper();
    tick_each_second(&mut keeper, 1_000, 29_000);
    assert_eq!(keeper.confirmed(at(20_000), at(29_500)), [Action::Thaw]);

    // One that has aged past its worth does not.
    let mut keeper = self::keeper();
    tick_each_second(&mut keeper, 1_000, 49_000);
    assert_eq!(keeper.confirmed(at(20_000), at(20_000 + TRUSTED_MS)), []);
    assert!(matches!(keeper.state(), State::Doubt { .. }));
}

#[test]
fn doubt_for_the_whole_grace_aborts() {
    let mut keeper = keeper();
    tick_each_second(&mut keeper, 1_000, 29_000);
    let wanted = tick_each_second(&mut keeper, 30_000, 89_000);
    assert_eq!(wanted.last(), Some(&(89_000, Action::Abort(AbortReason::DoubtGraceOver))));
    assert_eq!(wanted.iter().filter(|(_, a)| matches!(a, Action::Abort(_))).count(), 1);
    assert_eq!(keeper.state(), State::Lost);
}

#[test]
fn a_grace_of_nothing_aborts_as_doubt_begins() {
    let mut keeper = Keeper::granted(KeeperConfig::for_ttl(TTL_MS, 0), at(0), 0, at(0), 0);
    tick_each_second(&mut keeper, 1_000, 28_000);
    let wanted = keeper.tick(at(TRUSTED_MS), 0);
    assert_eq!(wanted, [Action::Freeze, Action::Abort(AbortReason::DoubtGraceOver)]);
}

#[test]
fn what_the_store_says_is_gone_is_aborted_held_or_in_doubt() {
    for reason in [AbortReason::Lost, AbortReason::Cancelled, AbortReason::UnknownToken] {
        let mut held = keeper();
        assert_eq!(held.refused(reason), [Action::Abort(reason)]);
        let mut in_doubt = keeper();
        tick_each_second(&mut in_doubt, 1_000, 29_000);
        assert_eq!(in_doubt.refused(reason), [Action::Abort(reason)]);
        check_nothing_follows(&mut held);
        check_nothing_follows(&mut in_doubt);
    }
}

/// Nothing brings back what is lost.
#[track_caller]
fn check_nothing_follows(keeper: &mut Keeper) {
    assert_eq!(keeper.state(), State::Lost);
    assert_eq!(keeper.confirmed(at(30_000), at(30_001)), []);
    assert_eq!(keeper.refused(AbortReason::Cancelled), []);
    assert_eq!(keeper.tick(at(30_002), 0), []);
    assert_eq!(keeper.tick(at(90_000), 0), []);
    assert!(!keeper.completing(at(90_000)));
    assert!(!keeper.may_act(at(90_000)));
    assert_eq!(keeper.state(), State::Lost);
}

#[test]
fn what_is_finished_is_as_quiet_as_what_is_lost() {
    let mut keeper = keeper();
    assert!(keeper.completing(at(1_000)));
    keeper.finished();
    check_nothing_follows(&mut keeper);
}

#[test]
fn after_a_pause_it_freezes_before_anything_else() {
    let mut keeper = keeper();
    keeper.tick(at(1_000), 0);
    let woken = at(1_001 + PAUSE_MS);
    assert!(!keeper.may_act(woken), "also when it was not ticked yet");
    let wanted = keeper.tick(woken, 0);
    assert_eq!(wanted, [Action::Freeze, Action::ReportPause(PAUSE_MS + 1), Action::Renew]);
    assert!(!keeper.may_act(woken));

    // A gap as long as that is none.
    let mut keeper = self::keeper();
    keeper.tick(at(1_000), 0);
    assert_eq!(keeper.tick(at(1_000 + PAUSE_MS), 0), [Action::Renew]);
    assert!(keeper.may_act(at(1_000 + PAUSE_MS)));
}

#[test]
fn an_answer_from_before_a_pause_thaws_nothing() {
    let mut keeper = keeper();
    tick_each_second(&mut keeper, 1_000, 10_000);
    // Sent at 10 s; then stopped until 25 s. The answer is read before the keeper is ticked…
    assert_eq!(keeper.confirmed(at(10_000), at(25_000)), []);
    assert!(!keeper.may_act(at(25_000)));
    let wanted = keeper.tick(at(25_000), 0);
    assert_eq!(wanted, [Action::Freeze, Action::ReportPause(15_000), Action::Renew]);
    // … or after, and would be within its time.
    assert_eq!(keeper.confirmed(at(10_001), at(25_001)), []);
    assert!(!keeper.may_act(at(25_001)));
    assert_eq!(keeper.confirmed(at(25_000), at(25_100)), [Action::Thaw]);
    assert!(keeper.may_act(at(25_100)));
}

#[test]
fn a_pause_in_doubt_is_no_doubt_that_the_server_could_have_ended() {
    let mut keeper = keeper();
    tick_each_second(&mut keeper, 1_000, 79_000);
    // 50 s of the grace are over; then stopped for an hour.
    let woken = 79_000 + 3_600_000;
    assert_eq!(keeper.tick(at(woken), 0), [Action::ReportPause(3_600_000), Action::Renew]);
    assert_eq!(keeper.confirmed(at(78_000), at(woken + 1)), [], "from before the pause");
    let wanted = tick_each_second(&mut keeper, woken + 1_000, woken + 10_000);
    assert_eq!(
        wanted.last(),
        Some(&(woken + 10_000, Action::Abort(AbortReason::DoubtGraceOver))),
        "the ten seconds that were left"
    );
}

#[test]
fn a_complete_may_be_sent_while_the_lease_is_trusted_and_not_otherwise() {
    assert!(keeper().completing(at(TRUSTED_MS.min(PAUSE_MS))));
    assert!(!keeper().completing(at(PAUSE_MS + 1)), "paused");
    let mut keeper = keeper();
    tick_each_second(&mut keeper, 1_000, 28_000);
    assert!(!keeper.completing(at(TRUSTED_MS)), "expired");
    keeper.tick(at(29_000), 0);
    assert!(!keeper.completing(at(29_000)), "in doubt");
    assert!(matches!(keeper.state(), State::Doubt { .. }));
}

#[test]
fn completing_is_never_aborted_and_may_be_repeated_until_it_is_answered() {
    let mut keeper = keeper();
    assert!(keeper.completing(at(1_000)));
    for reason in [AbortReason::Lost, AbortReason::Cancelled, AbortReason::UnknownToken] {
        assert_eq!(keeper.refused(reason), [], "the complete itself may be what closed it");
    }
    let wanted = tick_each_second(&mut keeper, 2_000, 300_000);
    assert!(wanted.iter().all(|(_, action)| *action == Action::Renew));
    assert!(keeper.may_act(at(300_000)) && keeper.completing(at(300_000)));
    // A pause is told, and freezes nothing: there are no children any more.
    assert_eq!(keeper.tick(at(400_000), 0), [Action::ReportPause(100_000), Action::Renew]);
    assert_eq!(keeper.confirmed(at(400_000), at(400_001)), []);
    assert_eq!(keeper.state(), State::Completing);
}

#[test]
fn a_pause_is_a_third_of_the_ttl_and_at_least_two_seconds() {
    assert_eq!(KeeperConfig::for_ttl(30_000, 0).pause_ms, 10_000);
    assert_eq!(KeeperConfig::for_ttl(500, 0).pause_ms, 2_000);
}
