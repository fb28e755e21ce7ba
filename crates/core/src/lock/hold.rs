//! What a holder does: renew, release. And what time does.

use crate::{
    Number, Timestamp,
    lease::{Lease, Moment, Pair},
    refusal::Refusal,
};

use super::{
    Lock, LockApplied, LockClose, LockGrant,
    wait::{serve_next, sweep},
};

/// What a renewal is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewed {
    /// The lease as renewed.
    pub lease: Lease,
    /// Whether it must be durable before it is answered.
    pub durable: bool,
}

/// Renews, also after the deadline as long as nobody has taken the lock. `grant` is what is kept
/// of the pair's grant.
pub fn renew(
    lock: Lock,
    grant: Option<&LockGrant>,
    shown: &Pair,
    now: Moment,
) -> Result<LockApplied<Renewed>, Refusal> {
    open_grant(&lock, grant, shown)?;
    let mut lock = lock;
    let holding = lock.holding.as_mut().expect("its grant is open");
    let durable = holding.lease.renewal_must_be_durable(now);
    holding.lease = holding.lease.renewed(now);
    let answer = Renewed { lease: holding.lease, durable };
    Ok(LockApplied { lock, answer, events: Vec::new() })
}

/// Releases, and serves the next waiter under `fresh`, in the same change. Repeated by its author,
/// it answers the same.
pub fn release(
    lock: Lock,
    grant: Option<&LockGrant>,
    shown: &Pair,
    fresh: Number,
    now: Moment,
) -> Result<LockApplied<()>, Refusal> {
    let released_before = grant.is_some_and(|grant| {
        grant.pair == *shown && matches!(grant.closed, Some((_, LockClose::Released)))
    });
    if released_before {
        return Ok(LockApplied { lock, answer: (), events: Vec::new() });
    }
    open_grant(&lock, grant, shown)?;
    let mut lock = lock;
    let mut events = Vec::new();
    lock.close(LockClose::Released, &mut events);
    sweep(&mut lock, now.at, &mut events);
    serve_next(&mut lock, fresh, now, &mut events);
    Ok(LockApplied { lock, answer: (), events })
}

/// Time passed: a holding that lapsed goes to the first who waits, under `fresh`; waiters that
/// have gone leave. Answers when it wants to be called again.
pub fn tick(lock: Lock, fresh: Number, now: Moment) -> LockApplied<Option<Timestamp>> {
    let mut lock = lock;
    let mut events = Vec::new();
    sweep(&mut lock, now.at, &mut events);
    serve_next(&mut lock, fresh, now, &mut events);
    let ends = lock.waiters.iter().map(|waiter| waiter.wants_until.min(waiter.alive_until));
    let deadline = lock.holding.as_ref().map(|holding| holding.lease.deadline);
    let next_at = if lock.waiters.is_empty() { None } else { ends.chain(deadline).min() };
    LockApplied { lock, answer: next_at, events }
}

/// The pair must be the open grant's: one never granted is unknown, one that was closed is lost.
fn open_grant(lock: &Lock, grant: Option<&LockGrant>, shown: &Pair) -> Result<(), Refusal> {
    let open = lock.holding.as_ref();
    if open.is_some_and(|held| held.token == shown.token && held.lease_id == shown.lease_id) {
        return Ok(());
    }
    let known = grant.filter(|grant| grant.pair == *shown && grant.name == lock.name);
    if let Some((_, how)) = known.and_then(|grant| grant.closed) {
        return Err(Refusal::LeaseLost { fence: lock.fence, reason: how });
    }
    let subject = format!("lock {}", lock.name);
    Err(Refusal::UnknownToken { token: shown.token, subject })
}
