//! The outbox as the operations see it.

use palisade_core::{
    Number, Timestamp,
    outbox::{Delivery, Endpoint, EndpointId, Standing},
};

use crate::{fault::Fault, tables::OutboxTables};

use super::MemoryEngine;

impl OutboxTables for MemoryEngine {
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Fault> {
        Ok(self.endpoints.values().cloned().collect())
    }

    fn put_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), Fault> {
        self.wrote = true;
        self.endpoints.insert(endpoint.id, endpoint.clone());
        Ok(())
    }

    fn drop_endpoint(&mut self, id: EndpointId) -> Result<(), Fault> {
        self.wrote = true;
        self.endpoints.remove(&id);
        self.outbox.retain(|_, row| row.endpoint != id);
        Ok(())
    }

    fn delivery(&mut self, number: Number) -> Result<Option<Delivery>, Fault> {
        Ok(self.outbox.get(&number).cloned())
    }

    fn put_delivery(&mut self, delivery: &Delivery) -> Result<(), Fault> {
        self.wrote = true;
        self.outbox.insert(delivery.number, delivery.clone());
        Ok(())
    }

    fn due_deliveries(
        &mut self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Delivery>, Fault> {
        let open = |row: &&Delivery| row.endpoint == endpoint && row.is_open();
        let is_first = |row: &&Delivery| {
            let of_job = self.outbox.values().filter(open);
            of_job.filter(|other| other.notice.job == row.notice.job).min_by_key(|row| row.number)
                == Some(row)
        };
        let due = self.outbox.values().filter(open).filter(|row| row.is_due(now));
        let mut due: Vec<_> = due.filter(is_first).cloned().collect();
        due.sort_by_key(|row| (row.due_at, row.number));
        due.truncate(limit);
        Ok(due)
    }

    fn busy_deliveries(&mut self, endpoint: EndpointId, now: Timestamp) -> Result<usize, Fault> {
        let leased = self.outbox.values().filter(|row| {
            row.endpoint == endpoint
                && matches!(row.standing, Standing::Leased(_))
                && row.due_at > now
        });
        Ok(leased.count())
    }

    fn next_delivery(&mut self, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
        let open = self.outbox.values().filter(|row| row.is_open());
        Ok(open.map(|row| row.due_at).filter(|at| *at > now).min())
    }
}
