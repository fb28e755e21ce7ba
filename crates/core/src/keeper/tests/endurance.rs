//! What a keeper puts up with for hours.

use super::*;

/// Drives a keeper by its own `wake_at` for so long. Each renewal is answered `held` after
/// `reply_ms`, unless `lost` says that it, by its number, never is.
fn drive(
    config: KeeperConfig,
    reply_ms: u64,
    for_ms: u64,
    lost: impl Fn(u64) -> bool,
) -> Vec<Action> {
    let mut keeper = Keeper::granted(config, at(0), 0, at(0), 7);
    let mut answers: Vec<(u64, u64)> = Vec::new();
    let (mut renewals, mut now) = (0, 0);
    let mut wanted = Vec::new();
    while now < for_ms {
        let answer = answers.iter().map(|(arrives, _)| *arrives).min().unwrap_or(u64::MAX);
        now = keeper.wake_at().0.min(answer).max(now);
        for (_, sent) in answers.extract_if(.., |(arrives, _)| *arrives <= now) {
            wanted.extend(keeper.confirmed(at(sent), at(now)));
        }
        if now >= keeper.wake_at().0 {
            for action in keeper.tick(at(now), renewals * 7_919) {
                if action == Action::Renew {
                    renewals += 1;
                    if !lost(renewals) {
                        answers.push((now + reply_ms, now));
                    }
                } else {
                    wanted.push(action);
                }
            }
            assert!(keeper.wake_at() > at(now), "a loop of sleeping and ticking never spins");
        }
    }
    wanted
}

const HOURS_MS: u64 = 3 * 60 * 60 * 1_000;

#[test]
fn a_lease_is_kept_for_hours_without_a_freeze() {
    for ttl_ms in [500, 2_000, 30_000, 600_000] {
        let config = KeeperConfig::for_ttl(ttl_ms, GRACE_MS);
        assert_eq!(drive(config, ttl_ms / 10, HOURS_MS, |_| false), [], "{ttl_ms}");
    }
}

#[test]
fn a_lease_is_kept_though_every_second_renewal_is_lost() {
    for ttl_ms in [500, 2_000, 30_000, 600_000] {
        for odd in [0, 1] {
            let config = KeeperConfig::for_ttl(ttl_ms, GRACE_MS);
            let lost = |renewal| renewal % 2 == odd;
            assert_eq!(drive(config, ttl_ms / 10, HOURS_MS, lost), [], "{ttl_ms}, {odd}");
        }
    }
}

#[test]
fn a_server_that_was_away_for_less_than_the_grace_costs_a_freeze_and_a_thaw() {
    // Renewals 4 to 20 are lost: three in time, the others in doubt.
    let wanted = drive(config(), 100, HOURS_MS, |renewal| (4..20).contains(&renewal));
    assert_eq!(wanted, [Action::Freeze, Action::Thaw]);
}

#[test]
fn a_server_that_stays_away_costs_the_work() {
    let wanted = drive(config(), 100, HOURS_MS, |renewal| renewal >= 4);
    assert_eq!(wanted, [Action::Freeze, Action::Abort(AbortReason::DoubtGraceOver)]);
}
