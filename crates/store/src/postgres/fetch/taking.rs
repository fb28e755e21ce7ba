//! Taking in what was fetched: rows into the overlay.

use std::collections::BTreeMap;

use palisade_core::{
    LockName, RequestId,
    lock::{Lock, Waiter},
};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        overlay::{Next, Overlay},
        records::{blob, claim, job, lease, lock, object, request, session},
        values::Columns,
        wants::OwnKey,
    },
    tables::Scope,
};

use super::{About, effects};

/// Takes in the rows of one answer.
pub(super) fn take_in(
    overlay: &mut Overlay,
    locks: &mut BTreeMap<LockName, Lock>,
    about: About,
    rows: &[Row],
) -> Result<(), Fault> {
    match about {
        About::Jobs(_)
        | About::Keys(..)
        | About::Due(..)
        | About::Lapsed(..)
        | About::Backups(..)
        | About::Spent => return take_in_jobs(overlay, about, rows),
        About::NextDue(capability) => {
            let columns = Columns::new("job", &rows[0]);
            let (run_at, due_elsewhere) = (columns.optional_instant(0)?, columns.get(1)?);
            let next = Next { run_at, due_elsewhere, ..Next::default() };
            overlay.fetched_next(capability, next);
        }
        About::NextLease(capability) => {
            let columns = Columns::new("lease", &rows[0]);
            let (lapses, backup) = (columns.optional_instant(0)?, columns.optional_instant(1)?);
            overlay.fetched_next_lease(&capability, lapses, backup);
        }
        About::LeasesOfJobs(jobs) => {
            take_in_leases(overlay, rows)?;
            overlay.fetched_whole(jobs);
        }
        About::Leases(tokens) => {
            take_in_leases(overlay, rows)?;
            overlay.fetched_tokens(tokens);
        }
        About::LeasesOfSessions => take_in_leases(overlay, rows)?,
        About::Beats(sessions) => {
            let beats =
                rows.iter().map(session::decode_beat).collect::<Result<BTreeMap<_, _>, _>>()?;
            for session in sessions {
                let seq = beats.get(&session).copied();
                overlay.fetched_session(session, seq);
            }
        }
        About::Pauses(asked) => {
            let known = rows.iter().map(session::decode_pause).collect::<Result<Vec<_>, _>>()?;
            for pause in asked {
                overlay.pauses.fetch(pause, known.contains(&pause).then_some(()));
            }
        }
        other => return take_in_rest(overlay, locks, other, rows),
    }
    Ok(())
}

/// The same of everything that is neither a job nor a lease.
fn take_in_rest(
    overlay: &mut Overlay,
    locks: &mut BTreeMap<LockName, Lock>,
    about: About,
    rows: &[Row],
) -> Result<(), Fault> {
    match about {
        About::Claims(asked) => {
            let mut known =
                rows.iter().map(claim::decode).collect::<Result<BTreeMap<_, _>, _>>()?;
            for claim in asked {
                let grants = known.remove(&claim);
                overlay.claims.fetch(claim, grants);
            }
        }
        About::Requests(asked) => take_in_requests(overlay, asked, rows)?,
        About::Objects(keys) => {
            for key in keys {
                overlay.objects.fetch(key, None);
            }
            for row in rows {
                let object = object::decode(row)?;
                overlay.objects.fetch(object.key.clone(), Some(object));
            }
        }
        About::Blobs(digests) => {
            for digest in digests {
                overlay.fetched_blob(digest, None);
            }
            for row in rows {
                let blob = blob::decode(row)?;
                overlay.fetched_blob(blob.digest, Some(blob));
            }
        }
        About::Tokens(tokens) => {
            for token in tokens {
                overlay.tokens.fetch(token, None);
            }
            for row in rows {
                let columns = Columns::new("token", row);
                overlay.tokens.fetch(columns.number(0)?, Some(columns.job(1)?));
            }
        }
        About::Effect(about) => return effects::take_in(overlay, about, rows),
        About::Numbers => {
            let drawn = rows.iter().map(|row| Columns::new("counter", row).number(0));
            overlay.fetched_numbers(drawn.collect::<Result<_, _>>()?);
        }
        other => return take_in_locks(overlay, locks, other, rows),
    }
    Ok(())
}

/// The same of locks and their grants.
fn take_in_locks(
    overlay: &mut Overlay,
    locks: &mut BTreeMap<LockName, Lock>,
    about: About,
    rows: &[Row],
) -> Result<(), Fault> {
    match about {
        About::Locks(asked) => {
            let found = rows.iter().map(lock::decode).collect::<Result<Vec<_>, _>>()?;
            for name in asked {
                overlay.fetched_lock(name, None);
            }
            locks.extend(found.into_iter().map(|lock| (lock.name.clone(), lock)));
        }
        About::Waiters => take_in_waiters(locks, rows)?,
        About::Overdue => {
            let names = rows.iter().map(|row| Columns::new("lock", row).parsed(0));
            overlay.fetched_overdue_locks(names.collect::<Result<_, _>>()?);
        }
        About::Grants(tokens) => {
            let found = rows.iter().map(lock::decode_grant).collect::<Result<Vec<_>, _>>()?;
            for token in tokens {
                overlay.lock_grants.fetch(token, None);
            }
            for grant in found {
                overlay.lock_grants.fetch(grant.pair.token, Some(grant));
            }
        }
        About::GrantsOf(asked) => {
            for of in asked {
                overlay.fetched_grant_of(of, None);
            }
            for row in rows {
                let grant = lock::decode_grant(row)?;
                let of = (grant.name.clone(), grant.request_id.clone());
                overlay.fetched_grant_of(of, Some(grant.pair.token));
                overlay.fetched_grant(grant);
            }
        }
        About::SpentGrants => {
            let tokens = rows.iter().map(|row| Columns::new("grant", row).number(0));
            overlay.fetched_spent_grants(tokens.collect::<Result<_, _>>()?);
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn take_in_jobs(overlay: &mut Overlay, about: About, rows: &[Row]) -> Result<(), Fault> {
    let mut came = Vec::with_capacity(rows.len());
    if let About::Jobs(ids) = &about {
        for id in ids {
            overlay.fetched_job(*id, None);
        }
    }
    if let About::Keys(which, keys) = &about {
        for own in keys {
            overlay.fetched_key(*which, own.clone(), None);
        }
    }
    for row in rows {
        let (job, version) = job::decode(row)?;
        came.push(job.id);
        overlay.fetched_released(job.id, job::decode_released(row)?);
        if let About::Keys(which, _) = &about {
            let own = OwnKey::new(&job.tenant, job.key);
            overlay.fetched_key(*which, own, Some(job.id));
        }
        overlay.fetched_job(job.id, Some((job, version)));
    }
    match about {
        About::Due(capability, asked) => overlay.fetched_due(&capability, asked, &came),
        About::Lapsed(capability, asked) => {
            overlay.fetched_lapsed(&capability, asked, &came);
        }
        About::Backups(capability, asked) => {
            overlay.fetched_backups(&capability, asked, &came);
        }
        About::Spent => overlay.fetched_spent(&came),
        _ => {}
    }
    Ok(())
}

fn take_in_leases(overlay: &mut Overlay, rows: &[Row]) -> Result<(), Fault> {
    for row in rows {
        overlay.fetched_lease(lease::decode(row)?);
    }
    Ok(())
}

fn take_in_requests(
    overlay: &mut Overlay,
    asked: Vec<(Scope, RequestId)>,
    rows: &[Row],
) -> Result<(), Fault> {
    let mut known = rows.iter().map(request::decode).collect::<Result<BTreeMap<_, _>, _>>()?;
    for request in asked {
        let recorded = known.remove(&request);
        overlay.requests.fetch(request, recorded);
    }
    Ok(())
}

fn take_in_waiters(locks: &mut BTreeMap<LockName, Lock>, rows: &[Row]) -> Result<(), Fault> {
    for row in rows {
        let (name, waiter): (LockName, Waiter) = lock::decode_waiter(row)?;
        if let Some(lock) = locks.get_mut(&name) {
            lock.waiters.push(waiter);
        }
    }
    Ok(())
}
