//! What time and broken connections do.

use palisade_core::{
    history::{Event, What},
    lease::Moment,
    transition,
};

use crate::{
    command::{Publish, Suspect, Suspected, Ticked},
    tables::Tables,
};

use super::{Outcome, locks, publications, write};

/// How many jobs one tick may give up, so that it does not hold the store for long.
const GIVE_UPS_MAX: usize = 1_000;
/// How many publications one tick may carry out, each of up to 20,000 outputs.
const PUBLICATIONS_MAX: usize = 16;

/// A session ended and did not come back: its leases become claimable, except those renewed
/// since. Expiring a job too early costs compute alone, so this may be eager.
pub(super) fn suspect(
    tables: &mut dyn Tables,
    suspect: &Suspect,
    now: Moment,
) -> Outcome<Suspected> {
    let held = tables.held();
    let mut leases = Vec::new();
    for token in held.of_session(&suspect.session) {
        let Some(open) = held.get(token) else { continue };
        let lease = open.lease.suspected(suspect.seen_at, now.at);
        if lease != open.lease {
            leases.push((open.job, token));
            held.set_lease(token, lease);
        }
    }
    let events: Vec<_> = leases
        .iter()
        .map(|(job, token)| Event::of_job(now.at, *job, What::Suspected { token: *token }))
        .collect();
    if !events.is_empty() {
        tables.append(&events)?;
    }
    Ok(Ok(Suspected { leases }))
}

/// Records the clock while anything is leased, and gives up what was lost too often where nobody
/// claims. Lapsed locks go to those who wait, and publications that are still due are carried out.
pub(super) fn tick(tables: &mut dyn Tables, now: Moment) -> Outcome<Ticked> {
    if !tables.held().is_empty() || tables.any_lock_held() {
        tables.record_clock(now.at)?;
    }
    locks::tick(tables, now)?;
    if let Err(refusal) = publications::publish(tables, Publish { limit: PUBLICATIONS_MAX }, now)? {
        return Ok(Err(refusal));
    }
    let spent = tables.held().lapsed(now.at, &|held| held.last_chance, GIVE_UPS_MAX);
    let mut given_up = Vec::new();
    for id in spent {
        let Some(job) = tables.job(id)? else { continue };
        let before = job.clone();
        let (_, gave_up) = write(tables, Some(&before), transition::expire(job, now.at))?;
        if gave_up {
            given_up.push(id);
        }
    }
    Ok(Ok(Ticked { given_up }))
}
