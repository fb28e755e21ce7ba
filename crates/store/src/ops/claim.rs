//! Claiming.

use palisade_core::{
    JobId, Number, Refusal, Timestamp,
    job::Job,
    lease::{Moment, Pair},
    transition::{self, Claimant, Fresh, Granted},
};

use crate::{
    command::{Claim, Claimed, Grant},
    fault::Fault,
    lease_book::Held,
    tables::{Ahead, Tables},
};

use super::{Outcome, write};

pub(super) fn claim(tables: &mut dyn Tables, claim: &Claim, now: Moment) -> Outcome<Claimed> {
    let before = tables.granted(&claim.session, &claim.request_id)?;
    if !before.is_empty() {
        return asked_again(tables, before, now);
    }
    let mut grants = Vec::new();
    let mut fresh = claim.lease_ids.iter();
    // A job that is given up leaves its place to the next, so there may be several rounds.
    while grants.len() < claim.lease_ids.len() {
        let room = claim.lease_ids.len() - grants.len();
        let candidates = candidates(tables, claim, now, room)?;
        if candidates.is_empty() {
            break;
        }
        for id in candidates {
            let Some(job) = tables.job(id)? else { continue };
            let lease_id = *fresh.as_slice().first().expect("one for each place");
            let pair = Pair { token: tables.draw()?, lease_id };
            if let Some(job) = grant(tables, job, claim, pair, now)? {
                fresh.next();
                grants.push(Grant { job, pair, ttl_ms: claim.ttl_ms });
            }
        }
    }
    let next_at = if grants.is_empty() { next_at(tables, claim, now)? } else { None };
    Ok(Ok(Claimed { grants, again: false, lost: Vec::new(), next_at }))
}

/// Grants one job. None: it was given up, or is not claimable after all.
fn grant(
    tables: &mut dyn Tables,
    job: Job,
    claim: &Claim,
    pair: Pair,
    now: Moment,
) -> Result<Option<Job>, Fault> {
    let by = Claimant {
        worker: claim.worker.clone(),
        session: claim.session.clone(),
        request_id: claim.request_id.clone(),
        seq: claim.seq,
        ttl_ms: claim.ttl_ms,
    };
    let before = job.clone();
    let fresh = Fresh { token: pair.token, lease_id: pair.lease_id };
    let (job, granted) = write(tables, Some(&before), transition::claim(job, by, fresh, now))?;
    match granted {
        Granted::Yes => Ok(Some(job)),
        Granted::GivenUp => Ok(None),
        // A candidate that the rule does not take would be found for ever.
        Granted::No => Err(Fault::Corrupt {
            record: job.id.to_string(),
            what: "an index calls it claimable, but it is not".to_owned(),
        }),
    }
}

/// What could be granted: lapsed jobs first, since they have waited longest; then what is queued;
/// then backups.
fn candidates(
    tables: &mut dyn Tables,
    claim: &Claim,
    now: Moment,
    room: usize,
) -> Result<Vec<JobId>, Fault> {
    let fits = |held: &Held| claim.capabilities.contains(&held.needs);
    let mut found = tables.held().lapsed(now.at, &fits, room);
    if found.len() < room {
        found.extend(tables.due(&claim.capabilities, now.at, room - found.len())?);
    }
    if found.len() < room {
        let other = |held: &Held| fits(held) && held.session != claim.session;
        let backups = tables.held().backup_due(now.at, &other, room - found.len());
        let backups: Vec<_> = backups.into_iter().filter(|id| !found.contains(id)).collect();
        found.extend(backups);
    }
    Ok(found)
}

/// When something may become claimable by the mere passing of time.
fn next_at(
    tables: &mut dyn Tables,
    claim: &Claim,
    now: Moment,
) -> Result<Option<Timestamp>, Fault> {
    let fits = |held: &Held| claim.capabilities.contains(&held.needs);
    let due = tables.next_due(&claim.capabilities, now.at)?;
    Ok(tables.held().next_change(now.at, &fits).into_iter().chain(due).min())
}

/// The reply to a claim was lost: what is still open is renewed and returned.
fn asked_again(
    tables: &mut dyn Tables,
    before: Vec<(JobId, Number)>,
    now: Moment,
) -> Outcome<Claimed> {
    let mut claimed = Claimed { grants: Vec::new(), again: true, lost: Vec::new(), next_at: None };
    let jobs = before.iter().map(|(id, _)| *id).collect();
    tables.read_ahead(Ahead { jobs, ..Ahead::default() })?;
    for (id, token) in before {
        let Some(job) = tables.job(id)? else { continue };
        let Some(attempt) = job.attempt(token) else { continue };
        let pair = Pair { token, lease_id: attempt.lease_id };
        if attempt.closed.is_some() {
            claimed.lost.push((id, pair));
            continue;
        }
        let ttl_ms = attempt.lease.ttl_ms;
        match super::heartbeat::renew(tables, id, &pair, now)? {
            // Read again: the grant shows the lease as it is now.
            Ok(_) => match tables.job(id)? {
                Some(job) => claimed.grants.push(Grant { job, pair, ttl_ms }),
                None => claimed.lost.push((id, pair)),
            },
            Err(Refusal::UnknownToken { .. }) => claimed.lost.push((id, pair)),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    Ok(Ok(claimed))
}
