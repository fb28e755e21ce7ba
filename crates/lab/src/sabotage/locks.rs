//! Where a sabotage bends a lock: its record on the way from and to the disk, and what is asked.

use palisade_core::{
    Number, Timestamp,
    lease::Pair,
    lock::{Lock, Waiter},
};
use palisade_store::command::Command;

use crate::engine::CrashEngine;

use super::Sabotage;

/// Bends a record as it is read.
pub(crate) fn on_read(broken: Option<Sabotage>, lock: Option<&mut Lock>) {
    let Some(lock) = lock else { return };
    match broken {
        Some(Sabotage::LastComeFirstServed) => {
            lock.waiters.sort_by_key(|waiter| std::cmp::Reverse(waiter.ticket));
        }
        Some(Sabotage::GoneWaiterGranted) => {
            for waiter in &mut lock.waiters {
                waiter.alive_until = Timestamp(Number::MAX.get());
                waiter.wants_until = Timestamp(Number::MAX.get());
            }
        }
        _ => {}
    }
}

/// Bends a record on its way to the disk.
pub(crate) fn on_put(broken: Option<Sabotage>, before: Option<&Lock>, lock: &mut Lock) {
    match broken {
        Some(Sabotage::ReleasedThenGranted) => serve_later(before, lock),
        Some(Sabotage::LockFenceNotRaised) if lock.holding.is_none() => {
            lock.fence = before.map_or(lock.fence, |before| before.fence);
        }
        Some(Sabotage::LockForgotten) if lock.holding.is_none() => lock.fence = Number::ZERO,
        _ => {}
    }
}

/// The holder's end is one transaction, the next one's grant is left to another.
fn serve_later(before: Option<&Lock>, lock: &mut Lock) {
    let Some(held) = before.and_then(|before| before.holding.as_ref()) else { return };
    let Some(next) = lock.holding.take_if(|next| next.token != held.token) else { return };
    let first = Waiter {
        ticket: next.ticket,
        request_id: next.request_id,
        holder: next.holder,
        lease_id: next.lease_id,
        ttl_ms: next.lease.ttl_ms,
        since: next.granted_at,
        wants_until: Timestamp(Number::MAX.get()),
        alive_until: Timestamp(Number::MAX.get()),
        seats: next.seats,
    };
    lock.waiters.insert(0, first);
}

/// Bends what is asked.
pub(super) fn before(engine: &CrashEngine, broken: Sabotage, command: &mut Command) {
    match (broken, command) {
        (Sabotage::GrantOfGoneKept, Command::LeaveLock(asked)) => {
            let lock = engine.live.locks.get(&asked.name);
            let holding = lock.and_then(|lock| lock.holding.as_ref());
            if holding.is_some_and(|held| held.request_id == asked.request_id) {
                asked.request_id = "nobody".parse().expect("a fine id");
            }
        }
        (Sabotage::ReleasedByAnybody, Command::ReleaseLock(asked)) => {
            let lock = engine.live.locks.get(&asked.name);
            if let Some(held) = lock.and_then(|lock| lock.holding.as_ref()) {
                asked.pair = Pair { token: held.token, lease_id: held.lease_id };
            }
        }
        _ => {}
    }
}
