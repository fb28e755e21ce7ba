//! The queue: who is served next, who has gone.

use crate::{LeaseId, Number, RequestId, Timestamp, lease::Moment};

use super::{Lock, LockApplied, LockClose, LockEvent, Waiter, acquire::granted};

/// Whether a waiter may still be granted the lock.
fn is_there(waiter: &Waiter, now: Timestamp) -> bool {
    now < waiter.wants_until && now < waiter.alive_until
}

/// Ends a holding whose time is over, if somebody waits for it, and passes over waiters that have
/// gone.
pub(super) fn sweep(lock: &mut Lock, now: Timestamp, events: &mut Vec<LockEvent>) {
    lock.waiters.retain(|waiter| {
        let there = is_there(waiter, now);
        if !there {
            let (ticket, holder) = (waiter.ticket, waiter.holder.clone());
            events.push(LockEvent::Left { ticket, holder });
        }
        there
    });
    let lapsed = lock.holding.as_ref().is_some_and(|holding| !holding.lease.is_within(now));
    if lapsed && !lock.waiters.is_empty() {
        lock.close(LockClose::Superseded, events);
    }
}

/// Grants a free lock to the first who waits. [`sweep`] comes before it.
pub(super) fn serve_next(lock: &mut Lock, fresh: Number, now: Moment, events: &mut Vec<LockEvent>) {
    if lock.holding.is_some() || lock.waiters.is_empty() {
        return;
    }
    let first = lock.waiters.remove(0);
    lock.open(granted(first, fresh, now), events);
}

/// A call goes that asked for the lock, named by the lease id that it brought. If no other call of
/// the same request is there, the request leaves the queue; and if it was granted the lock
/// meanwhile, nobody knows of the grant: it is released at once, and the next is served under
/// `fresh`.
pub fn leave(
    lock: Lock,
    request_id: &RequestId,
    call: LeaseId,
    fresh: Number,
    now: Moment,
) -> LockApplied<()> {
    let mut lock = lock;
    let mut events = Vec::new();
    let place = lock.waiters.iter().position(|waiter| waiter.request_id == *request_id);
    if let Some(place) = place
        && lock.waiters[place].seats.leave(call)
    {
        let gone = lock.waiters.remove(place);
        events.push(LockEvent::Left { ticket: gone.ticket, holder: gone.holder });
    }
    let holding = lock.holding.as_mut().filter(|held| held.request_id == *request_id);
    if holding.is_some_and(|held| held.seats.leave(call)) {
        lock.close(LockClose::Abandoned, &mut events);
        sweep(&mut lock, now.at, &mut events);
        serve_next(&mut lock, fresh, now, &mut events);
    }
    LockApplied { lock, answer: (), events }
}
