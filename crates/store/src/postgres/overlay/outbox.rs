//! The outbox as the operations see it: rows that are here, and how far the transaction has looked
//! among those that are not.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    JobId, Number, Timestamp,
    outbox::{Delivery, Endpoint, EndpointId, Standing},
};

use crate::{
    fault::Fault,
    postgres::{records::outbox::Coming, shelf::Shelf},
    tables::OutboxTables,
};

use super::{Overlay, Wants};

/// How many deliveries that become due are looked at first.
pub(in crate::postgres) const NEXT_AT_ONCE: usize = 16;

/// Endpoints, and their deliveries.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Outbox {
    pub(in crate::postgres) endpoints: Shelf<EndpointId, Endpoint>,
    /// Whether all of them are here.
    fetched: bool,
    /// Endpoints whose rows in the database are to go.
    pub(in crate::postgres) dropped: Vec<EndpointId>,
    pub(in crate::postgres) deliveries: Shelf<Number, Delivery>,
    /// Pairs all of whose open deliveries are here.
    whole: BTreeSet<(EndpointId, JobId)>,
    /// How many that are due were asked for of each endpoint, and the places of those that came.
    due: Option<(usize, BTreeMap<EndpointId, Vec<Place>>)>,
    /// How many are tried, as the database has them.
    busy: Option<BTreeMap<EndpointId, usize>>,
    /// How many that become due were asked for, and those that came.
    next: Option<(usize, Vec<Coming>)>,
}

/// A delivery's place among those that are due.
type Place = (Timestamp, Number);

/// Where a command began.
#[derive(Default)]
pub(super) struct Mark {
    endpoints: usize,
    dropped: usize,
    deliveries: usize,
}

impl Outbox {
    pub(super) fn mark(&self) -> Mark {
        Mark {
            endpoints: self.endpoints.mark(),
            dropped: self.dropped.len(),
            deliveries: self.deliveries.mark(),
        }
    }

    pub(super) fn roll_back_to(&mut self, mark: &Mark) {
        self.endpoints.roll_back_to(mark.endpoints);
        self.dropped.truncate(mark.dropped);
        self.deliveries.roll_back_to(mark.deliveries);
    }

    /// How many endpoints are known.
    pub(super) fn endpoints_known(&self) -> usize {
        self.endpoints.rows().count()
    }

    pub(in crate::postgres) fn fetched_endpoints(&mut self, endpoints: Vec<Endpoint>) {
        for endpoint in endpoints {
            self.endpoints.fetch(endpoint.id, Some(endpoint));
        }
        self.fetched = true;
    }

    pub(in crate::postgres) fn fetched_delivery(&mut self, number: Number, row: Option<Delivery>) {
        self.deliveries.fetch(number, row);
    }

    /// All open deliveries of these have come.
    pub(in crate::postgres) fn fetched_whole(&mut self, of: Vec<(EndpointId, JobId)>) {
        self.whole.extend(of);
    }

    pub(in crate::postgres) fn fetched_due(&mut self, asked: usize, came: Vec<Delivery>) {
        let mut places: BTreeMap<EndpointId, Vec<Place>> = BTreeMap::new();
        for row in came {
            places.entry(row.endpoint).or_default().push((row.due_at, row.number));
            self.deliveries.fetch(row.number, Some(row));
        }
        for places in places.values_mut() {
            places.sort_unstable();
        }
        self.due = Some((asked, places));
    }

    pub(in crate::postgres) fn fetched_busy(&mut self, busy: BTreeMap<EndpointId, usize>) {
        self.busy = Some(busy);
    }

    pub(in crate::postgres) fn fetched_next(&mut self, asked: usize, came: Vec<Coming>) {
        self.next = Some((asked, came));
    }

    /// Changed rows of an endpoint, each with what was fetched of it.
    fn changes_of(
        &self,
        endpoint: EndpointId,
    ) -> impl Iterator<Item = (Option<&Delivery>, &Delivery)> {
        let changes = self.deliveries.changes().map(|(_, before, row)| (before, row));
        changes.filter(move |(_, row)| row.endpoint == endpoint)
    }

    /// Of each of these jobs the first that is open here, where it is due.
    fn first_due(
        &self,
        endpoint: EndpointId,
        jobs: &BTreeSet<JobId>,
        now: Timestamp,
    ) -> impl Iterator<Item = Place> {
        let mut first: BTreeMap<JobId, &Delivery> = BTreeMap::new();
        for (_, row) in self.deliveries.rows() {
            let of_them = row.endpoint == endpoint && jobs.contains(&row.notice.job);
            if of_them && row.is_open() {
                let before = first.entry(row.notice.job).or_insert(row);
                if row.number < before.number {
                    *before = row;
                }
            }
        }
        let due = first.into_values().filter(move |row| row.is_due(now));
        due.map(|row| (row.due_at, row.number))
    }
}

fn is_busy(row: &Delivery, now: Timestamp) -> bool {
    matches!(row.standing, Standing::Leased(_)) && row.due_at > now
}

impl OutboxTables for Overlay {
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Fault> {
        if !self.outbox.fetched {
            return Err(self.miss(|wants| wants.endpoints = true));
        }
        let mut endpoints: Vec<_> =
            self.outbox.endpoints.rows().map(|(_, endpoint)| endpoint.clone()).collect();
        endpoints.sort_unstable_by_key(|endpoint| endpoint.id);
        Ok(endpoints)
    }

    fn put_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), Fault> {
        self.outbox.endpoints.put(endpoint.id, endpoint.clone());
        Ok(())
    }

    fn drop_endpoint(&mut self, id: EndpointId) -> Result<(), Fault> {
        self.outbox.dropped.push(id);
        self.outbox.endpoints.remove(id);
        let rows = self.outbox.deliveries.rows().filter(|(_, row)| row.endpoint == id);
        let numbers: Vec<_> = rows.map(|(number, _)| *number).collect();
        for number in numbers {
            self.outbox.deliveries.remove(number);
        }
        Ok(())
    }

    fn delivery(&mut self, number: Number) -> Result<Option<Delivery>, Fault> {
        match self.outbox.deliveries.get(&number) {
            Some(delivery) => Ok(delivery.cloned()),
            None => Err(self.miss(|wants| wants.deliveries.insert(number))),
        }
    }

    fn put_delivery(&mut self, delivery: &Delivery) -> Result<(), Fault> {
        self.outbox.deliveries.put(delivery.number, delivery.clone());
        Ok(())
    }

    fn due_deliveries(
        &mut self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Delivery>, Fault> {
        let outbox = &self.outbox;
        let dropped = outbox.dropped.contains(&endpoint);
        let Some((asked, places)) = &outbox.due else {
            return Err(self.miss(|wants| wants.due_deliveries = wants.due_deliveries.max(limit)));
        };
        // Of jobs that were told of here, the database does not know which comes first.
        let touched: BTreeSet<_> =
            outbox.changes_of(endpoint).map(|(_, row)| row.notice.job).collect();
        let unknown = touched.iter().map(|job| (endpoint, *job));
        let unknown: Vec<_> = unknown.filter(|of| !dropped && !outbox.whole.contains(of)).collect();
        if !unknown.is_empty() {
            return Err(self.miss(|wants| wants.open_deliveries.extend(unknown)));
        }
        let came = places.get(&endpoint).filter(|_| !dropped).map_or(&[][..], Vec::as_slice);
        let last = came.last().filter(|_| came.len() >= *asked);
        let stands = |(_, number): &&Place| {
            let row = outbox.deliveries.present(number);
            row.is_some_and(|row| row.is_due(now) && !touched.contains(&row.notice.job))
        };
        let mut due: Vec<_> = came.iter().filter(stands).copied().collect();
        due.extend(outbox.first_due(endpoint, &touched, now));
        due.retain(|place| last.is_none_or(|last| place <= last));
        due.sort_unstable();
        if due.len() < limit && last.is_some() {
            let more = asked.saturating_mul(2).max(limit);
            return Err(self.miss(|wants| wants.due_deliveries = wants.due_deliveries.max(more)));
        }
        let rows = due.iter().filter_map(|(_, number)| outbox.deliveries.present(number));
        Ok(rows.take(limit).cloned().collect())
    }

    fn busy_deliveries(&mut self, endpoint: EndpointId, now: Timestamp) -> Result<usize, Fault> {
        let outbox = &self.outbox;
        let Some(busy) = &outbox.busy else {
            return Err(self.miss(|wants| wants.busy_deliveries = true));
        };
        let dropped = outbox.dropped.contains(&endpoint);
        let there = busy.get(&endpoint).filter(|_| !dropped).copied().unwrap_or(0);
        let changes: Vec<_> = outbox.changes_of(endpoint).collect();
        let were =
            |before: Option<&Delivery>| !dropped && before.is_some_and(|row| is_busy(row, now));
        let ended = changes.iter().filter(|(before, _)| were(*before)).count();
        let begun = changes.iter().filter(|(_, row)| is_busy(row, now)).count();
        Ok((there + begun).saturating_sub(ended))
    }

    fn next_delivery(&mut self, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
        let outbox = &self.outbox;
        let Some((asked, came)) = &outbox.next else {
            return Err(self.miss(|wants| {
                wants.next_deliveries = wants.next_deliveries.max(NEXT_AT_ONCE);
            }));
        };
        // Of those that are here, the row tells.
        let elsewhere = came.iter().find(|(number, endpoint, at)| {
            *at > now
                && outbox.deliveries.get(number).is_none()
                && !outbox.dropped.contains(endpoint)
        });
        if elsewhere.is_none() && came.len() >= *asked {
            let more = asked.saturating_mul(4);
            return Err(self.miss(|wants: &mut Wants| {
                wants.next_deliveries = wants.next_deliveries.max(more);
            }));
        }
        let open = outbox.deliveries.rows().filter(|(_, row)| row.is_open());
        let here = open.map(|(_, row)| row.due_at).filter(|at| *at > now);
        Ok(here.chain(elsewhere.map(|(_, _, at)| *at)).min())
    }
}
