//! The outbox as the operations see it. Endpoints are kept in memory as the running transaction
//! has them: every job that ends looks at them.

use palisade_core::{
    Number, Timestamp,
    outbox::{Delivery, Endpoint, EndpointId},
};

use crate::{fault::Fault, tables::OutboxTables};

use super::{engine::SqliteEngine, records::outbox};

impl OutboxTables for SqliteEngine {
    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Fault> {
        if let Some(endpoints) = &self.endpoints {
            return Ok(endpoints.clone());
        }
        let endpoints = outbox::endpoints(&self.connection)?;
        self.endpoints = Some(endpoints.clone());
        Ok(endpoints)
    }

    fn put_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), Fault> {
        self.wrote = true;
        self.endpoints = None;
        outbox::write_endpoint(&self.connection, endpoint)
    }

    fn drop_endpoint(&mut self, id: EndpointId) -> Result<(), Fault> {
        self.wrote = true;
        self.endpoints = None;
        outbox::drop_endpoint(&self.connection, id)
    }

    fn delivery(&mut self, number: Number) -> Result<Option<Delivery>, Fault> {
        outbox::read(&self.connection, number)
    }

    fn put_delivery(&mut self, delivery: &Delivery) -> Result<(), Fault> {
        self.wrote = true;
        outbox::write(&self.connection, delivery)
    }

    fn due_deliveries(
        &mut self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Delivery>, Fault> {
        outbox::due(&self.connection, endpoint, now, limit)
    }

    fn busy_deliveries(&mut self, endpoint: EndpointId, now: Timestamp) -> Result<usize, Fault> {
        outbox::busy(&self.connection, endpoint, now)
    }

    fn next_delivery(&mut self, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
        outbox::next(&self.connection, now)
    }
}
