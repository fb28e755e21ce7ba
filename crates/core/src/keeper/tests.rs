//! Tests of the keeper: alone, by rows; at random; and with the rules, over a small network.

mod alone;
mod endurance;
mod network;
mod random;
mod virtual_net;
mod virtual_store;

use super::*;

/// The ttl of the tests, in ms: trusted for 28,970 ms, granted for 30,030.
const TTL_MS: u64 = 30_000;
const TRUSTED_MS: u64 = 28_970;
/// A pause is what is longer than this.
const PAUSE_MS: u64 = 10_000;
const GRACE_MS: u64 = 60_000;

const fn at(ms: u64) -> Timestamp {
    Timestamp(ms)
}

fn config() -> KeeperConfig {
    KeeperConfig::for_ttl(TTL_MS, GRACE_MS)
}

/// A keeper whose claim was sent and granted at 0.
fn keeper() -> Keeper {
    Keeper::granted(config(), at(0), 0, at(0), 0)
}

/// Ticks at every second up to and including `to`, and answers all that was wanted.
fn tick_each_second(keeper: &mut Keeper, from: u64, to: u64) -> Vec<(u64, Action)> {
    let mut wanted = Vec::new();
    for second in from / 1_000..=to / 1_000 {
        let now = second * 1_000;
        wanted.extend(keeper.tick(at(now), 0).into_iter().map(|action| (now, action)));
    }
    wanted
}
