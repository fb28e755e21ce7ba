//! Locks across restarts: the holder keeps its time, those who waited come again.

use palisade_core::{
    LeaseId,
    lease::Pair,
    lock::{Acquire, Acquired, Lock},
    time::granted_span_ms,
};

use crate::{
    command::{AcquireLock, ReleaseLock, RenewLock},
    conformance::bench::TTL_MS,
    query::{Query, View},
};

use super::driver::Driver;

const HOUR_MS: u64 = 3_600_000;

fn wish(driver: &mut Driver, who: &str, wait_ms: u64) -> AcquireLock {
    let wish = Acquire {
        holder: who.parse().unwrap(),
        ttl_ms: TTL_MS,
        wait_ms,
        request_id: who.parse().unwrap(),
        lease_id: LeaseId(driver.fresh()),
        alive_ms: HOUR_MS,
    };
    AcquireLock { name: "door".parse().unwrap(), wish }
}

fn lock(driver: &Driver) -> Lock {
    match driver.engine.query(&Query::Lock("door".parse().unwrap())).unwrap() {
        View::Lock(Some(lock)) => *lock,
        other => panic!("{other:?}"),
    }
}

fn hold(driver: &mut Driver, who: &str) -> Pair {
    let asked = wish(driver, who, 0);
    match driver.run(asked) {
        Acquired::Granted(held) => Pair { token: held.token, lease_id: held.lease_id },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_holder_keeps_its_lock_and_a_waiter_takes_its_place_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let held = hold(&mut driver, "alice");
    let asked = wish(&mut driver, "bob", HOUR_MS);
    assert!(matches!(driver.run(asked.clone()), Acquired::Waiting { .. }));
    driver.pass_ms(29_000);
    let mut driver = driver.killed_and_restarted(folder.path(), HOUR_MS);
    let after = lock(&driver);
    let lease = after.holding.as_ref().unwrap().lease;
    assert_eq!(lease.deadline.since_ms(driver.now), granted_span_ms(TTL_MS));
    assert!(after.waiters.is_empty(), "its connection broke");
    assert!(matches!(driver.run(asked.clone()), Acquired::Waiting { .. }));
    assert_eq!(hold(&mut driver, "alice"), held, "a lost reply is answered across a restart");
    driver.run(RenewLock { name: asked.name.clone(), pair: held });
    driver.run(ReleaseLock { name: asked.name.clone(), pair: held });
    let holder = lock(&driver).holding.unwrap();
    assert_eq!(holder.holder.as_str(), "bob");
    assert!(holder.token > held.token);
    let mut driver = driver.killed_and_restarted(folder.path(), 1_000);
    driver.run(ReleaseLock { name: asked.name, pair: held });
    assert_eq!(lock(&driver).holding.unwrap().token, holder.token, "a late repeat does nothing");
}

#[test]
fn a_silent_holder_keeps_what_was_left_and_loses_it_once_that_was_served() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let held = hold(&mut driver, "alice");
    let driver_two = driver.killed_and_restarted(folder.path(), HOUR_MS);
    let mut driver = driver_two;
    driver.pass_ms(20_000);
    let mut driver = driver.killed_and_restarted(folder.path(), HOUR_MS);
    let left = lock(&driver).holding.unwrap().lease.deadline.since_ms(driver.now);
    assert_eq!(left, granted_span_ms(TTL_MS) - 20_000);
    let asked = wish(&mut driver, "bob", HOUR_MS);
    driver.run(asked);
    driver.pass_ms(11_000);
    assert_eq!(lock(&driver).holding.unwrap().holder.as_str(), "bob");
    let renewed = driver.try_run(RenewLock { name: "door".parse().unwrap(), pair: held });
    assert!(renewed.is_err(), "{renewed:?}");
}
