//! The outbox: rows written with the move that they tell of, and their delivery.

use palisade_core::{
    Refusal,
    history::{Event, What},
    job::Job,
    lease::Moment,
    outbox::{self, Delivery, Endpoint, EndpointId, EventId, EventType, Leasing, Settled},
};

use crate::{
    command::{
        CreateEndpoint, DeleteEndpoint, LeaseDeliveries, LeasedDeliveries, ProgressNotices,
        Redeliver, RotateSecret, SettleDelivery, Settlement, TellProgress, ToDeliver,
    },
    fault::Fault,
    tables::Tables,
};

use super::Outcome;

/// Most rows that one lease of deliveries may give up, so that it does not hold the store for long.
const GIVE_UPS_MAX: usize = 1_000;

/// Writes what a change of a job has to be told of, in the change's own transaction.
pub(super) fn enqueue(
    tables: &mut dyn Tables,
    before: Option<&Job>,
    after: &Job,
    now: palisade_core::Timestamp,
) -> Result<(), Fault> {
    let told = outbox::told(before, after);
    let Some(event) = told.first().map(|told| told.event) else { return Ok(()) };
    let endpoints = wanting(tables, after, event)?;
    if endpoints.is_empty() {
        return Ok(());
    }
    // One for all that is said of this move: what comes later gets a higher one.
    let seq = tables.draw()?;
    for told in told {
        let notice = outbox::notice(after, told, seq, now);
        for endpoint in &endpoints {
            let number = tables.draw()?;
            let delivery = Delivery::new(number, endpoint.id, notice.clone(), now);
            tables.put_delivery(&delivery)?;
        }
    }
    Ok(())
}

fn wanting(tables: &mut dyn Tables, job: &Job, event: EventType) -> Result<Vec<Endpoint>, Fault> {
    let mut endpoints = tables.endpoints()?;
    endpoints.retain(|endpoint| endpoint.wants(&job.tenant, event));
    Ok(endpoints)
}

pub(super) fn create(
    tables: &mut dyn Tables,
    asked: CreateEndpoint,
    now: Moment,
) -> Outcome<Endpoint> {
    let there = tables.endpoints()?;
    let endpoint = Endpoint { created_at: now.at, ..asked.endpoint };
    match outbox::create(&there, endpoint) {
        Err(refusal) => Ok(Err(refusal)),
        Ok(endpoint) => {
            tables.put_endpoint(&endpoint)?;
            Ok(Ok(endpoint))
        }
    }
}

pub(super) fn rotate(
    tables: &mut dyn Tables,
    asked: &RotateSecret,
    now: Moment,
) -> Outcome<Endpoint> {
    let Some(endpoint) = find(tables, asked.endpoint)? else {
        return Ok(Err(no_endpoint(asked.endpoint)));
    };
    let endpoint = outbox::rotate(endpoint, asked.secret, asked.keep_ms, now.at);
    tables.put_endpoint(&endpoint)?;
    Ok(Ok(endpoint))
}

pub(super) fn delete(tables: &mut dyn Tables, asked: &DeleteEndpoint) -> Outcome<()> {
    if find(tables, asked.endpoint)?.is_none() {
        return Ok(Err(no_endpoint(asked.endpoint)));
    }
    tables.drop_endpoint(asked.endpoint)?;
    Ok(Ok(()))
}

fn find(tables: &mut dyn Tables, id: EndpointId) -> Result<Option<Endpoint>, Fault> {
    Ok(tables.endpoints()?.into_iter().find(|endpoint| endpoint.id == id))
}

fn no_endpoint(id: EndpointId) -> Refusal {
    Refusal::NotFound { what: "webhook", id: id.to_string() }
}

/// Leases what is due, each endpoint in its turn, so that none takes another's place.
pub(super) fn lease(
    tables: &mut dyn Tables,
    asked: &LeaseDeliveries,
    now: Moment,
) -> Outcome<LeasedDeliveries> {
    let endpoints = tables.endpoints()?;
    let mut fresh = asked.lease_ids.iter();
    let mut due = Vec::new();
    for endpoint in &endpoints {
        let busy = tables.busy_deliveries(endpoint.id, now.at)?;
        let room = asked.endpoint_max.saturating_sub(busy).min(asked.lease_ids.len());
        if room > 0 {
            // The last comes first out below.
            let mut rows = tables.due_deliveries(endpoint.id, now.at, room)?;
            rows.reverse();
            due.push((endpoint, rows));
        }
    }
    // The longest due first; then one of each endpoint in turn.
    due.sort_by_key(|(_, rows)| rows.last().map(|row| (row.due_at, row.number)));
    let mut leased = Vec::new();
    let mut given_up = 0;
    while due.iter().any(|(_, rows)| !rows.is_empty()) && given_up < GIVE_UPS_MAX {
        for (endpoint, rows) in &mut due {
            let (Some(row), Some(lease_id)) = (rows.pop(), fresh.as_slice().first()) else {
                continue;
            };
            match outbox::lease(row, *lease_id, asked.ttl_ms, now.at) {
                Leasing::Leased(delivery) => {
                    fresh.next();
                    tables.put_delivery(&delivery)?;
                    let endpoint = Endpoint::clone(endpoint);
                    leased.push(ToDeliver { delivery, lease_id: *lease_id, endpoint });
                }
                Leasing::Dead(delivery, what) => {
                    given_up += 1;
                    put(tables, &delivery, what, now)?;
                }
            }
        }
        if fresh.as_slice().is_empty() {
            break;
        }
    }
    let next_at = if endpoints.is_empty() { None } else { tables.next_delivery(now.at)? };
    Ok(Ok(LeasedDeliveries { leased, next_at, endpoints }))
}

pub(super) fn settle(
    tables: &mut dyn Tables,
    asked: SettleDelivery,
    now: Moment,
) -> Outcome<Settlement> {
    let SettleDelivery { id, lease_id, tried, chance } = asked;
    let Some(delivery) = row(tables, id)? else { return Ok(Ok(Settlement::Ignored)) };
    match outbox::settle(delivery, lease_id, tried, chance, now.at) {
        Settled::Ignored => return Ok(Ok(Settlement::Ignored)),
        Settled::Later(delivery) => tables.put_delivery(&delivery)?,
        Settled::Over(delivery, what) => put(tables, &delivery, what, now)?,
    }
    Ok(Ok(Settlement::Recorded))
}

pub(super) fn redeliver(
    tables: &mut dyn Tables,
    asked: &Redeliver,
    now: Moment,
) -> Outcome<Delivery> {
    let Some(delivery) = row(tables, asked.id)? else {
        let id = asked.id.to_string();
        return Ok(Err(Refusal::NotFound { what: "delivery", id }));
    };
    match outbox::again(delivery.clone(), now.at) {
        None => Ok(Ok(delivery)),
        Some((delivery, what)) => {
            put(tables, &delivery, what, now)?;
            Ok(Ok(delivery))
        }
    }
}

fn row(tables: &mut dyn Tables, id: EventId) -> Result<Option<Delivery>, Fault> {
    Ok(tables.delivery(id.number)?.filter(|row| row.endpoint == id.endpoint))
}

fn put(tables: &mut dyn Tables, delivery: &Delivery, what: What, now: Moment) -> Result<(), Fault> {
    tables.put_delivery(delivery)?;
    tables.append(&[Event::of_job(now.at, delivery.notice.job, what)])
}

/// What is said of renders whose attempts are open. Their numbers are drawn while they are, so
/// that progress never seems newer than the end.
pub(super) fn progress(
    tables: &mut dyn Tables,
    asked: TellProgress,
    now: Moment,
) -> Outcome<ProgressNotices> {
    let mut notices = Vec::new();
    for (job, pair, came) in asked.renders {
        let held = tables.held().get(pair.token);
        if held.is_none_or(|held| held.lease_id != pair.lease_id || held.job != job) {
            continue;
        }
        let Some(job) = tables.job(job)? else { continue };
        let endpoints = wanting(tables, &job, EventType::Progress)?;
        if endpoints.is_empty() {
            continue;
        }
        let seq = tables.draw()?;
        for notice in outbox::progress(&job, pair.token, came, (seq, now.at)) {
            for endpoint in &endpoints {
                notices.push((endpoint.clone(), tables.draw()?, notice.body.clone()));
            }
        }
    }
    Ok(Ok(ProgressNotices { notices }))
}
