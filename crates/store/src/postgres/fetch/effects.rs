//! What the collector, notifications, publications and forgetting ask for, and its taking in.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{JobId, Number, Timestamp, outbox::EndpointId};
use tokio_postgres::Row;

use crate::{
    fault::Fault,
    postgres::{
        overlay::Overlay,
        records::{blob, claim, collection, job, journal, outbox, publication, request},
        values::{Columns, count, instant, int, number},
        wants::Wants,
    },
};

use super::{About as AboutAll, Round, taking};

/// What an answer is to.
pub(super) enum About {
    Generations(Vec<Number>),
    Kept(BTreeMap<Number, usize>),
    Cases(Vec<Number>),
    Endpoints,
    Deliveries(Vec<Number>),
    OpenDeliveries(Vec<(EndpointId, JobId)>),
    DueDeliveries(usize),
    BusyDeliveries,
    NextDeliveries(usize),
    Publications(usize),
    Lives(BTreeSet<JobId>),
    Chunks(u64, usize),
    OldRequests(Timestamp, usize),
    OldClaims(Timestamp, usize),
}

/// Asks for what is wanted.
pub(super) fn ask(round: &mut Round<'_>, wants: &Wants, now: i64) {
    ask_collection(round, wants);
    ask_outbox(round, wants, now);
    ask_old(round, wants);
    if wants.publications > 0 {
        let asked = publication::due(round.client, count(wants.publications));
        round.ask(AboutAll::Effect(About::Publications(wants.publications)), asked);
    }
}

fn numbers<'a>(numbers: impl IntoIterator<Item = &'a Number>) -> Vec<i64> {
    numbers.into_iter().map(|one| number(*one)).collect()
}

fn ask_collection(round: &mut Round<'_>, wants: &Wants) {
    let client = round.client;
    if !wants.generations.is_empty() {
        let asked = collection::generations(client, numbers(&wants.generations));
        let generations = wants.generations.iter().copied().collect();
        round.ask(AboutAll::Effect(About::Generations(generations)), asked);
    }
    if !wants.kept.is_empty() {
        // After the generations were locked: whoever keeps one has it locked until the commit.
        let asked = wants.kept.values().map(|asked| count(*asked)).collect();
        let asked = collection::kept(client, numbers(wants.kept.keys()), asked);
        round.ask(AboutAll::Effect(About::Kept(wants.kept.clone())), asked);
    }
    if !wants.cases.is_empty() {
        let asked = collection::find(client, numbers(&wants.cases));
        let cases = wants.cases.iter().copied().collect();
        round.ask(AboutAll::Effect(About::Cases(cases)), asked);
    }
}

fn ask_outbox(round: &mut Round<'_>, wants: &Wants, now: i64) {
    let client = round.client;
    if !wants.deliveries.is_empty() {
        let asked = outbox::find(client, numbers(&wants.deliveries));
        let deliveries = wants.deliveries.iter().copied().collect();
        round.ask(AboutAll::Effect(About::Deliveries(deliveries)), asked);
    }
    if !wants.open_deliveries.is_empty() {
        let of: Vec<_> = wants.open_deliveries.iter().copied().collect();
        let asked = outbox::open_of_jobs(client, &of);
        round.ask(AboutAll::Effect(About::OpenDeliveries(of)), asked);
    }
    if wants.due_deliveries > 0 {
        let asked = outbox::due(client, now, count(wants.due_deliveries));
        round.ask(AboutAll::Effect(About::DueDeliveries(wants.due_deliveries)), asked);
    }
    if wants.busy_deliveries {
        round.ask(AboutAll::Effect(About::BusyDeliveries), outbox::busy(client, now));
    }
    if wants.next_deliveries > 0 {
        let asked = outbox::next(client, now, count(wants.next_deliveries));
        round.ask(AboutAll::Effect(About::NextDeliveries(wants.next_deliveries)), asked);
    }
}

fn ask_old(round: &mut Round<'_>, wants: &Wants) {
    let client = round.client;
    if !wants.lives.is_empty() {
        let asked = job::lives(client, wants.lives.iter().map(|id| job::id(*id)).collect());
        round.ask(AboutAll::Effect(About::Lives(wants.lives.clone())), asked);
    }
    for (after, limit) in &wants.chunks {
        let asked = journal::chunks(client, int(*after), count(*limit));
        round.ask(AboutAll::Effect(About::Chunks(*after, *limit)), asked);
    }
    for (before, limit) in &wants.old_requests {
        let asked = request::old(client, instant(*before), count(*limit));
        round.ask(AboutAll::Effect(About::OldRequests(*before, *limit)), asked);
    }
    for (before, limit) in &wants.old_claims {
        let asked = claim::old(client, instant(*before), count(*limit));
        round.ask(AboutAll::Effect(About::OldClaims(*before, *limit)), asked);
    }
}

/// Takes in the rows of one answer.
pub(super) fn take_in(overlay: &mut Overlay, about: About, rows: &[Row]) -> Result<(), Fault> {
    match about {
        About::Generations(asked) => {
            for at in asked {
                overlay.fetched_generation(at, None);
            }
            for row in rows {
                let blob = blob::decode(row)?;
                overlay.fetched_generation(blob.generation, Some(blob));
            }
        }
        About::Kept(asked) => {
            let mut came: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
            for row in rows {
                let (generation, keeper) = collection::decode_kept(row)?;
                came.entry(generation).or_default().insert(keeper);
            }
            for (generation, asked) in asked {
                let keepers = came.remove(&generation).unwrap_or_default();
                overlay.fetched_kept(generation, asked, keepers);
            }
        }
        About::Cases(asked) => {
            for at in asked {
                overlay.cases.fetch(at, None);
            }
            for row in rows {
                let case = collection::decode(row)?;
                overlay.cases.fetch(case.generation, Some(case));
            }
        }
        About::Publications(asked) => {
            taking::take_in_jobs(overlay, AboutAll::Nothing, rows)?;
            let came = rows.iter().map(publication::decode).collect::<Result<_, _>>()?;
            overlay.fetched_publications(asked, came);
        }
        About::Lives(asked) => {
            let live = rows.iter().map(|row| Columns::new("job", row).job(0));
            overlay.retention.fetched_lives(asked, &live.collect::<Result<_, _>>()?);
        }
        About::Chunks(after, asked) => {
            let came = rows.iter().map(journal::decode_chunk).collect::<Result<_, _>>()?;
            overlay.retention.fetched_chunks(after, asked, came);
        }
        About::OldRequests(before, asked) => {
            let mut came = Vec::with_capacity(rows.len());
            for row in rows {
                let (key, recorded) = request::decode(row)?;
                came.push(key.clone());
                overlay.requests.fetch(key, Some(recorded));
            }
            overlay.retention.fetched_requests(before, asked, came);
        }
        About::OldClaims(before, asked) => {
            let mut came = Vec::with_capacity(rows.len());
            for row in rows {
                let (key, grants) = claim::decode(row)?;
                came.push(key.clone());
                overlay.claims.fetch(key, Some(grants));
            }
            overlay.retention.fetched_claims(before, asked, came);
        }
        other => return take_in_outbox(overlay, other, rows),
    }
    Ok(())
}

fn take_in_outbox(overlay: &mut Overlay, about: About, rows: &[Row]) -> Result<(), Fault> {
    let outbox = &mut overlay.outbox;
    match about {
        About::Endpoints => {
            let came = rows.iter().map(outbox::decode_endpoint).collect::<Result<_, _>>()?;
            outbox.fetched_endpoints(came);
        }
        About::Deliveries(asked) => {
            for at in asked {
                outbox.fetched_delivery(at, None);
            }
            for row in rows {
                let delivery = outbox::decode(row)?;
                outbox.fetched_delivery(delivery.number, Some(delivery));
            }
        }
        About::OpenDeliveries(of) => {
            for row in rows {
                let delivery = outbox::decode(row)?;
                outbox.fetched_delivery(delivery.number, Some(delivery));
            }
            outbox.fetched_whole(of);
        }
        About::DueDeliveries(asked) => {
            let came = rows.iter().map(outbox::decode).collect::<Result<_, _>>()?;
            outbox.fetched_due(asked, came);
        }
        About::BusyDeliveries => {
            let busy = rows.iter().map(outbox::decode_busy).collect::<Result<_, _>>()?;
            outbox.fetched_busy(busy);
        }
        About::NextDeliveries(asked) => {
            let came = rows.iter().map(outbox::decode_next).collect::<Result<_, _>>()?;
            outbox.fetched_next(asked, came);
        }
        _ => {}
    }
    Ok(())
}
