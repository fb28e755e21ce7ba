//! What a dispatch layer does that lies: it grants what is held, forgets renewals, expires the
//! living. Every pair still comes from the store, and each is issued once.

use palisade_core::{
    Number, Timestamp,
    history::{Event, What},
    job::{Attempt, JobState},
    lease::{Lease, Pair},
    transition::Beat,
};
use palisade_store::{
    command::{Answer, Beats, Claim, Claimed, Grant, Heartbeat, Suspected},
    tables::HeldLeases,
};

use super::CrashEngine;

/// One lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lie {
    /// Grants a held job again, closing nothing and raising no fence; `pick` (random) says which.
    GrantHeld {
        /// The claim that is answered.
        claim: Claim,
        /// Random.
        pick: u64,
    },
    /// Says `held` to everything, and renews nothing.
    ForgetRenewal(Heartbeat),
    /// Ends the lease of a living worker; `pick` (random) says whose.
    ExpireLiving {
        /// Random.
        pick: u64,
    },
}

/// Tells a lie. None: there is nothing to lie about.
pub(super) fn tell(engine: &mut CrashEngine, lie: &Lie, now: Timestamp) -> Option<Answer> {
    match lie {
        Lie::GrantHeld { claim, pick } => grant_held(engine, claim, *pick, now),
        Lie::ForgetRenewal(beat) => {
            let leases = beat.leases.iter().map(|_| Some(Beat::Held)).collect();
            Some(Answer::Heartbeat(Beats { leases, released: Vec::new() }))
        }
        Lie::ExpireLiving { pick } => {
            let held: Vec<_> = engine.book.all().cloned().collect();
            let victim = held.get(index(*pick, held.len())?)?;
            let lease = Lease { deadline: now, ..victim.lease };
            engine.book.set_lease(victim.token, lease);
            engine.book.commit(|_, _| {});
            Some(Answer::Suspect(Suspected { leases: vec![(victim.job, victim.token)] }))
        }
    }
}

fn index(pick: u64, length: usize) -> Option<usize> {
    let length = u64::try_from(length).ok().filter(|length| *length > 0)?;
    usize::try_from(pick % length).ok()
}

fn grant_held(
    engine: &mut CrashEngine,
    claim: &Claim,
    pick: u64,
    now: Timestamp,
) -> Option<Answer> {
    let answered_before = engine.live.jobs.values().any(|job| {
        let mut attempts = job.attempts.iter();
        attempts.any(|held| held.session == claim.session && held.claim == claim.request_id)
    });
    // A claim asked again gets its first answer: the liar's pairs are issued once, too.
    if answered_before {
        return None;
    }
    let running: Vec<_> = engine
        .live
        .jobs
        .values()
        .filter(|job| job.state == JobState::Running)
        .map(|job| job.id)
        .collect();
    let id = *running.get(index(pick, running.len())?)?;
    let mut job = engine.job_now(id)?;
    let token: Number = engine.draw_number();
    let pair = Pair { token, lease_id: *claim.lease_ids.first()? };
    let lease = Lease::granted(claim.ttl_ms, engine.moment(now));
    job.attempts.push(Attempt {
        token,
        lease_id: pair.lease_id,
        worker: claim.worker.clone(),
        session: claim.session.clone(),
        claim: claim.request_id.clone(),
        claim_seq: claim.seq,
        granted_at: now,
        backup: true,
        lease,
        closed: None,
    });
    engine.force(job.clone());
    let what = What::Granted {
        token,
        worker: claim.worker.clone(),
        session: claim.session.clone(),
        ttl_ms: claim.ttl_ms,
        backup: true,
    };
    engine.journal(Event::of_job(now, id, what));
    let grants = vec![Grant { job, pair, ttl_ms: claim.ttl_ms }];
    Some(Answer::Claim(Claimed { grants, again: false, lost: Vec::new(), next_at: None }))
}
