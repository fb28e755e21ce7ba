//! The outbox as the real operations see it.

use std::rc::Rc;

use palisade_core::{
    Number, Timestamp,
    outbox::{Delivery, Endpoint, EndpointId, Standing},
};

use palisade_store::{fault::Fault, tables::OutboxTables};

use crate::sabotage::Sabotage;

use super::CrashEngine;

impl OutboxTables for CrashEngine {
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Fault> {
        Ok(self.live.endpoints.values().map(|endpoint| Endpoint::clone(endpoint)).collect())
    }

    fn put_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), Fault> {
        self.room()?;
        self.live.endpoints.insert(endpoint.id, Rc::new(endpoint.clone()));
        Ok(())
    }

    fn drop_endpoint(&mut self, id: EndpointId) -> Result<(), Fault> {
        self.room()?;
        self.live.endpoints.remove(&id);
        self.live.outbox.retain(|_, row| row.endpoint != id);
        Ok(())
    }

    fn delivery(&mut self, number: Number) -> Result<Option<Delivery>, Fault> {
        Ok(self.live.outbox.get(&number).map(|row| Delivery::clone(row)))
    }

    fn put_delivery(&mut self, delivery: &Delivery) -> Result<(), Fault> {
        self.room()?;
        self.live.outbox.insert(delivery.number, Rc::new(delivery.clone()));
        Ok(())
    }

    fn due_deliveries(
        &mut self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Delivery>, Fault> {
        let open = |row: &&Rc<Delivery>| row.endpoint == endpoint && row.is_open();
        let for_ever = self.broken == Some(Sabotage::DeliveryLeaseForEver);
        let taken = |row: &Delivery| for_ever && matches!(row.standing, Standing::Leased(_));
        let is_first = |row: &&Rc<Delivery>| {
            if self.broken == Some(Sabotage::DeliveredOutOfOrder) {
                return true;
            }
            let of_job = self.live.outbox.values().filter(open);
            of_job.filter(|other| other.notice.job == row.notice.job).min_by_key(|row| row.number)
                == Some(row)
        };
        let due =
            self.live.outbox.values().filter(open).filter(|row| row.is_due(now) && !taken(row));
        let mut due: Vec<_> = due.filter(is_first).map(|row| Delivery::clone(row)).collect();
        due.sort_by_key(|row| (row.due_at, row.number));
        due.truncate(limit);
        Ok(due)
    }

    fn busy_deliveries(&mut self, endpoint: EndpointId, now: Timestamp) -> Result<usize, Fault> {
        let leased = self.live.outbox.values().filter(|row| {
            row.endpoint == endpoint
                && matches!(row.standing, Standing::Leased(_))
                && row.due_at > now
        });
        Ok(leased.count())
    }

    fn next_delivery(&mut self, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
        let open = self.live.outbox.values().filter(|row| row.is_open());
        Ok(open.map(|row| row.due_at).filter(|at| *at > now).min())
    }
}
