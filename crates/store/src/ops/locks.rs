//! Locks: acquire, renew, release, leave, and what time does to them.

use palisade_core::{
    LockName, Number, Refusal, Timestamp,
    history::{Event, Subject, What},
    lease::{Lease, Moment, Pair},
    limits,
    lock::{self, Acquired, Lock, LockApplied, LockEvent, LockGrant},
};

use crate::{
    command::{AcquireLock, LeaveLock, ReleaseLock, RenewLock},
    fault::Fault,
    tables::Tables,
};

use super::Outcome;

pub(super) fn acquire(
    tables: &mut dyn Tables,
    asked: &AcquireLock,
    now: Moment,
) -> Outcome<Acquired> {
    let before = tables.lock(&asked.name)?;
    let lock = before.clone().unwrap_or_else(|| Lock::new(asked.name.clone()));
    let request = &asked.wish.request_id;
    let holds = lock.holding.as_ref().is_some_and(|held| held.request_id == *request);
    // An open grant is in the lock's own record; only one that has ended has to be looked up.
    let earlier = if holds { None } else { tables.lock_grant_of(&asked.name, request)? };
    let fresh = if lock::needs_number(&lock, &asked.wish, earlier.as_ref(), now.at) {
        tables.draw()?
    } else {
        // Not used: what stands already answers.
        lock.fence
    };
    match (lock::acquire(lock, &asked.wish, earlier.as_ref(), fresh, now), earlier) {
        (Ok(applied), _) => Ok(Ok(write(tables, before.as_ref(), applied, now)?)),
        (Err(refusal), Some(LockGrant { pair, .. })) => {
            refused(tables, Named { verb: "acquire", name: &asked.name, pair }, refusal, now)
        }
        (Err(refusal), None) => Ok(Err(refusal)),
    }
}

pub(super) fn renew(tables: &mut dyn Tables, asked: &RenewLock, now: Moment) -> Outcome<Lease> {
    let named = Named { verb: "renew", name: &asked.name, pair: asked.pair };
    let (before, grant) = match find(tables, named, now)? {
        Ok(found) => found,
        Err(refusal) => return Ok(Err(refusal)),
    };
    match lock::renew(before.clone(), grant.as_ref(), &asked.pair, now) {
        Ok(applied) => Ok(Ok(write(tables, Some(&before), applied, now)?.lease)),
        Err(refusal) => refused(tables, named, refusal, now),
    }
}

pub(super) fn release(tables: &mut dyn Tables, asked: &ReleaseLock, now: Moment) -> Outcome<()> {
    let named = Named { verb: "release", name: &asked.name, pair: asked.pair };
    let (before, grant) = match find(tables, named, now)? {
        Ok(found) => found,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let fresh = number_for_next(tables, &before)?;
    match lock::release(before.clone(), grant.as_ref(), &asked.pair, fresh, now) {
        Ok(applied) => Ok(Ok(write(tables, Some(&before), applied, now)?)),
        Err(refusal) => refused(tables, named, refusal, now),
    }
}

pub(super) fn leave(tables: &mut dyn Tables, asked: &LeaveLock, now: Moment) -> Outcome<()> {
    let Some(before) = tables.lock(&asked.name)? else { return Ok(Ok(())) };
    let fresh = number_for_next(tables, &before)?;
    let applied = lock::leave(before.clone(), &asked.request_id, asked.call, fresh, now);
    Ok(Ok(write(tables, Some(&before), applied, now)?))
}

/// How many ended grants one tick may forget, so that it does not hold the store for long.
const FORGET_MAX: usize = 10_000;

/// Lapsed locks go to those who wait, and waiters that have gone leave. Grants that ended long ago
/// are forgotten.
pub(super) fn tick(tables: &mut dyn Tables, now: Moment) -> Result<(), Fault> {
    for name in tables.waited_for() {
        let Some(before) = tables.lock(&name)? else { continue };
        let lapsed = before.holding.as_ref().is_none_or(|held| !held.lease.is_within(now.at));
        let fresh = if lapsed { tables.draw()? } else { before.fence };
        let applied = lock::tick(before.clone(), fresh, now);
        write(tables, Some(&before), applied, now)?;
    }
    let long_ago = Timestamp(now.at.0.saturating_sub(limits::LOCK_GRANT_KEPT_MS));
    tables.forget_lock_grants(long_ago, FORGET_MAX)
}

/// A number for whoever is next, if anybody waits.
fn number_for_next(tables: &mut dyn Tables, lock: &Lock) -> Result<Number, Fault> {
    if lock.waiters.is_empty() { Ok(lock.fence) } else { tables.draw() }
}

/// A verb and the grant that it names.
#[derive(Clone, Copy)]
struct Named<'a> {
    verb: &'static str,
    name: &'a LockName,
    pair: Pair,
}

fn find(
    tables: &mut dyn Tables,
    named: Named<'_>,
    now: Moment,
) -> Outcome<(Lock, Option<LockGrant>)> {
    let Some(lock) = tables.lock(named.name)? else {
        let subject = format!("lock {}", named.name);
        let unknown = Refusal::UnknownToken { token: named.pair.token, subject };
        return refused(tables, named, unknown, now);
    };
    let open = lock.holding.as_ref().is_some_and(|held| held.token == named.pair.token);
    // An open grant is in the lock's own record; only what was closed has to be looked up.
    let grant = if open { None } else { tables.lock_grant(named.pair.token)? };
    Ok(Ok((lock, grant)))
}

/// Notes a refusal in the journal of a lock that exists; strangers make no entries of their own.
fn refused<A>(
    tables: &mut dyn Tables,
    named: Named<'_>,
    refusal: Refusal,
    now: Moment,
) -> Outcome<A> {
    if matches!(refusal, Refusal::LeaseLost { .. }) {
        let what = What::Refused {
            verb: named.verb.to_owned(),
            token: named.pair.token,
            code: refusal.code().to_owned(),
            message: refusal.to_string(),
        };
        let subject = Subject::Lock(named.name.clone());
        tables.append(&[Event { at: now.at, subject, what }])?;
    }
    Ok(Err(refusal))
}

/// Writes what a rule answered: the record, the grants that were opened and closed, the journal.
fn write<A>(
    tables: &mut dyn Tables,
    before: Option<&Lock>,
    applied: LockApplied<A>,
    now: Moment,
) -> Result<A, Fault> {
    let LockApplied { lock, answer, events } = applied;
    if before != Some(&lock) {
        tables.put_lock(before, &lock)?;
    }
    for event in &events {
        match event {
            LockEvent::Granted(held) => tables.put_lock_grant(&LockGrant {
                name: lock.name.clone(),
                pair: Pair { token: held.token, lease_id: held.lease_id },
                holder: held.holder.clone(),
                request_id: held.request_id.clone(),
                closed: None,
            })?,
            LockEvent::Closed { token, how, .. } => {
                if let Some(grant) = tables.lock_grant(*token)? {
                    let closed = Some((now.at, *how));
                    tables.put_lock_grant(&LockGrant { closed, ..grant })?;
                }
            }
            LockEvent::Waiting(_) | LockEvent::Left { .. } => {}
        }
    }
    if !events.is_empty() {
        let entry = |event| Event {
            at: now.at,
            subject: Subject::Lock(lock.name.clone()),
            what: What::from(event),
        };
        let entries: Vec<_> = events.into_iter().map(entry).collect();
        tables.append(&entries)?;
    }
    Ok(answer)
}
