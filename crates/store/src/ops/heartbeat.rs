//! Renewing.

use std::collections::BTreeSet;

use palisade_core::{
    JobId, Number, Refusal, Timestamp,
    history::{Event, What},
    lease::{Moment, Pair},
    transition::{self, Beat},
};

use crate::{
    command::{Beats, Heartbeat},
    fault::Fault,
    tables::{Ahead, Tables},
};

use super::{Outcome, write};

pub(super) fn heartbeat(tables: &mut dyn Tables, beat: &Heartbeat, now: Moment) -> Outcome<Beats> {
    let mut leases = Vec::with_capacity(beat.leases.len());
    for (job, pair) in &beat.leases {
        leases.push(renew(tables, *job, pair, now)?.ok());
    }
    record_pauses(tables, beat, now.at)?;
    let released = release_unknown(tables, beat, now)?;
    Ok(Ok(Beats { leases, released }))
}

/// Renews one lease. A renewal in time that needs no durability touches no record.
pub(super) fn renew(
    tables: &mut dyn Tables,
    job: JobId,
    pair: &Pair,
    now: Moment,
) -> Outcome<Beat> {
    let held = tables.held();
    if let Some(open) = held.get(pair.token)
        && open.job == job
        && open.lease_id == pair.lease_id
        && !open.lease.renewal_must_be_durable(now)
        && open.lease.is_within(now.at)
    {
        let renewed = open.lease.renewed(now);
        held.set_lease(pair.token, renewed);
        return Ok(Ok(Beat::Held));
    }
    let Some(record) = tables.job(job)? else {
        let subject = job.to_string();
        return Ok(Err(Refusal::UnknownToken { token: pair.token, subject }));
    };
    let before = record.clone();
    match transition::heartbeat(record, pair, now) {
        Ok(applied) => Ok(Ok(write(tables, Some(&before), applied)?.1)),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Pauses that the worker measured, for the journal.
fn record_pauses(tables: &mut dyn Tables, beat: &Heartbeat, at: Timestamp) -> Result<(), Fault> {
    let mut events = Vec::new();
    for (job, pair, pause_ms) in &beat.pauses {
        let known = tables.job(*job)?.is_some_and(|job| {
            job.attempt(pair.token).is_some_and(|attempt| attempt.lease_id == pair.lease_id)
        });
        if known && tables.held().see_pause(pair.token, *pause_ms) {
            let what = What::Paused { token: pair.token, pause_ms: *pause_ms };
            events.push(Event::of_job(at, *job, what));
        }
    }
    if events.is_empty() { Ok(()) } else { tables.append(&events) }
}

/// A grant whose claim was sent before this heartbeat, and which is neither listed nor pending,
/// never reached its worker: it is handed back, so that a lost reply costs seconds, not a ttl.
/// A heartbeat that was overtaken by a later one releases nothing.
fn release_unknown(
    tables: &mut dyn Tables,
    beat: &Heartbeat,
    now: Moment,
) -> Result<Vec<(JobId, Number)>, Fault> {
    let held = tables.held();
    if beat.seq <= held.beat_seen(&beat.session) {
        return Ok(Vec::new());
    }
    held.see_beat(&beat.session, beat.seq);
    let listed: BTreeSet<_> = beat.leases.iter().map(|(_, pair)| pair.token).collect();
    let unlisted: Vec<_> = held
        .of_session(&beat.session)
        .into_iter()
        .filter(|token| !listed.contains(token))
        .filter_map(|token| held.get(token).cloned())
        .collect();
    let jobs = unlisted.iter().map(|open| open.job).collect();
    tables.read_ahead(Ahead { jobs, ..Ahead::default() })?;
    let mut released = Vec::new();
    for open in unlisted {
        let Some(job) = tables.job(open.job)? else { continue };
        let Some(attempt) = job.attempt(open.token) else { continue };
        if attempt.claim_seq >= beat.seq || beat.pending.contains(&attempt.claim) {
            continue;
        }
        let pair = Pair { token: open.token, lease_id: open.lease_id };
        let before = job.clone();
        if let Ok(applied) = transition::release(job, &pair, now.at) {
            write(tables, Some(&before), applied)?;
            released.push((open.job, open.token));
        }
    }
    Ok(released)
}
