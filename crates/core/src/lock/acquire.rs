//! Asking for a lock.

use crate::{
    HolderName, LeaseId, Number, RequestId, Timestamp,
    lease::{Lease, Moment},
    refusal::Refusal,
};

use super::{
    Holding, Lock, LockApplied, LockClose, LockEvent, LockGrant, Seats, Waiter,
    wait::{serve_next, sweep},
};

/// A wish for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquire {
    /// Who asks, as it calls itself.
    pub holder: HolderName,
    /// The lease's length, in ms.
    pub ttl_ms: u64,
    /// How long it would wait, in ms; 0 for not at all.
    pub wait_ms: u64,
    /// Asked again with it, the same wish: its grant, or its place in the queue.
    pub request_id: RequestId,
    /// Random, never used before. The grant's, if this call is the first with its request id; and
    /// this call's own name, see [`leave`](super::leave).
    pub lease_id: LeaseId,
    /// For how long it counts as being there unless it asks again, in ms.
    pub alive_ms: u64,
}

/// What a wish came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// It holds the lock.
    Granted(Holding),
    /// It waits. Asking again with the same request id keeps its place.
    Waiting {
        /// Its place: the grant tells it.
        ticket: Number,
        /// The lease id that its grant will have: the first call's with this request id.
        lease_id: LeaseId,
        /// How many are before it.
        before: usize,
        /// When something may change by the mere passing of time.
        next_at: Timestamp,
    },
    /// Somebody else holds it, and it would not wait, or has waited as long as it would.
    Held {
        /// Who holds it.
        holder: HolderName,
        /// When that lease ends unless it is renewed.
        deadline: Timestamp,
    },
}

/// Whether a wish needs a number of its own: not when it is answered by what stands already.
/// `earlier` is the newest grant that this request was given before.
pub fn needs_number(
    lock: &Lock,
    asked: &Acquire,
    earlier: Option<&LockGrant>,
    now: Timestamp,
) -> bool {
    if ended(earlier).is_some() {
        return false;
    }
    let Some(holding) = &lock.holding else { return true };
    if holding.request_id == asked.request_id {
        return false;
    }
    let known = lock.waiters.iter().any(|waiter| waiter.request_id == asked.request_id);
    !holding.lease.is_within(now) || (asked.wait_ms > 0 && !known)
}

/// How the grant ended that this request was given, if it was given one and its asker heard of it.
///
/// A request is granted the lock once: its late duplicate must not take the lock for somebody who
/// has long gone. A grant whose waiter had gone was never heard of, and may be asked for again.
fn ended(earlier: Option<&LockGrant>) -> Option<LockClose> {
    let (_, how) = earlier?.closed?;
    match how {
        LockClose::Released | LockClose::Superseded => Some(how),
        LockClose::Abandoned => None,
    }
}

/// Asks for the lock. `earlier` is the newest grant that this request was given before, if it was
/// given one; `fresh` is a number just drawn: the token, or the place in the queue.
pub fn acquire(
    lock: Lock,
    asked: &Acquire,
    earlier: Option<&LockGrant>,
    fresh: Number,
    now: Moment,
) -> Result<LockApplied<Acquired>, Refusal> {
    if let Some(reason) = ended(earlier) {
        return Err(Refusal::LeaseLost { fence: lock.fence, reason });
    }
    let mut lock = lock;
    let mut events = Vec::new();
    if let Some(holding) = &mut lock.holding
        && holding.request_id == asked.request_id
    {
        // Its reply was lost: the same pair again, for a ttl from now.
        holding.lease = holding.lease.renewed(now);
        holding.seats.take(asked.lease_id);
        let answer = Acquired::Granted(holding.clone());
        return Ok(LockApplied { lock, answer, events });
    }
    let known = join_queue(&mut lock, asked, fresh, now.at, &mut events);
    sweep(&mut lock, now.at, &mut events);
    // A ticket that was never waited with is as good as a token that was never given.
    serve_next(&mut lock, fresh, now, &mut events);
    let answer = answer(&mut lock, asked, known, &mut events);
    Ok(LockApplied { lock, answer, events })
}

/// Takes a place at the end of the queue, if it has none yet. Answers whether it had.
fn join_queue(
    lock: &mut Lock,
    asked: &Acquire,
    fresh: Number,
    now: Timestamp,
    events: &mut Vec<LockEvent>,
) -> bool {
    let alive_until = now.plus_ms(asked.alive_ms.max(1));
    let known = lock.waiters.iter_mut().find(|waiter| waiter.request_id == asked.request_id);
    if let Some(waiter) = known {
        waiter.alive_until = waiter.alive_until.max(alive_until);
        waiter.seats.take(asked.lease_id);
        return true;
    }
    let mut seats = Seats::default();
    seats.take(asked.lease_id);
    let waiter = Waiter {
        ticket: fresh,
        request_id: asked.request_id.clone(),
        holder: asked.holder.clone(),
        lease_id: asked.lease_id,
        ttl_ms: asked.ttl_ms,
        since: now,
        // A wish that will not wait is looked at once, now.
        wants_until: now.plus_ms(asked.wait_ms.max(1)),
        alive_until,
        seats,
    };
    if asked.wait_ms > 0 && lock.holding.is_some() {
        events.push(LockEvent::Waiting(waiter.clone()));
    }
    lock.waiters.push(waiter);
    false
}

fn answer(lock: &mut Lock, asked: &Acquire, known: bool, events: &mut Vec<LockEvent>) -> Acquired {
    if let Some(holding) = &lock.holding
        && holding.request_id == asked.request_id
    {
        return Acquired::Granted(holding.clone());
    }
    let holding = lock.holding.clone().expect("whoever is first in a free lock's queue is served");
    let place = lock.waiters.iter().position(|waiter| waiter.request_id == asked.request_id);
    match place {
        Some(before) if asked.wait_ms > 0 => {
            let waiter = &lock.waiters[before];
            let next_at = holding.lease.deadline.min(waiter.wants_until);
            let (ticket, lease_id) = (waiter.ticket, waiter.lease_id);
            Acquired::Waiting { ticket, lease_id, before, next_at }
        }
        place => {
            if let Some(place) = place {
                let gone = lock.waiters.remove(place);
                // If it came with this very call, nobody waited, and nobody left.
                if known {
                    events.push(LockEvent::Left { ticket: gone.ticket, holder: gone.holder });
                }
            }
            Acquired::Held { holder: holding.holder, deadline: holding.lease.deadline }
        }
    }
}

/// The grant of a waiter.
pub(super) fn granted(waiter: Waiter, token: Number, now: Moment) -> Holding {
    Holding {
        token,
        lease_id: waiter.lease_id,
        holder: waiter.holder,
        request_id: waiter.request_id,
        ticket: waiter.ticket,
        granted_at: now.at,
        waited_ms: now.at.since_ms(waiter.since),
        lease: Lease::granted(waiter.ttl_ms, now),
        seats: waiter.seats,
    }
}
