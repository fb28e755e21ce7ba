//! Random commands about notifications.

use palisade_core::{
    LeaseId,
    outbox::{Endpoint, EndpointId, EventId, EventType, Progress, Secret, Tried},
};

use crate::{
    command::{
        Command, CreateEndpoint, DeleteEndpoint, LeaseDeliveries, Redeliver, RotateSecret,
        SettleDelivery, TellProgress, ToDeliver,
    },
    conformance::outbox::endpoint,
    query::{DeliveryFilter, Query},
};

use super::Generator;

const ENDPOINTS: u64 = 3;

/// Leases of deliveries that were given, newest last.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Vec<(EventId, LeaseId)>);

impl Deliveries {
    pub(super) fn learn(&mut self, leased: &[ToDeliver]) {
        self.0.extend(leased.iter().map(|one| (one.delivery.id(), one.lease_id)));
    }
}

impl Generator {
    pub(super) fn outbox(&mut self) -> Command {
        match self.below(16) {
            0..=2 => self.create_endpoint(),
            3 => Command::RotateSecret(RotateSecret {
                endpoint: self.endpoint_id(),
                secret: Secret::new([9; 32]),
                keep_ms: self.below(5_000),
            }),
            4 if self.below(3) == 0 => {
                Command::DeleteEndpoint(DeleteEndpoint { endpoint: self.endpoint_id() })
            }
            4..=8 => Command::LeaseDeliveries(LeaseDeliveries {
                lease_ids: (0..self.below(4)).map(|_| LeaseId(u128::from(self.next()))).collect(),
                endpoint_max: 1 + usize::try_from(self.below(3)).expect("small"),
                ttl_ms: 1_000 + self.below(5_000),
            }),
            9..=12 => self.settle(),
            13 => {
                let (id, _) = self.delivery();
                Command::Redeliver(Redeliver { id })
            }
            _ => {
                let (job, pair) = self.named();
                let came = Progress { share: Some(0.25), ..Progress::default() };
                Command::TellProgress(TellProgress { renders: vec![(job, pair, came)] })
            }
        }
    }

    fn endpoint_id(&mut self) -> EndpointId {
        EndpointId(self.below(ENDPOINTS))
    }

    fn create_endpoint(&mut self) -> Command {
        let id = self.below(ENDPOINTS);
        let mut events = EventType::ALL.to_vec();
        events.retain(|_| self.below(4) > 0);
        let endpoint = Endpoint { events: events.into_iter().collect(), ..endpoint(id) };
        Command::CreateEndpoint(CreateEndpoint { endpoint })
    }

    fn delivery(&mut self) -> (EventId, LeaseId) {
        let nobody = EventId { endpoint: EndpointId(0), number: palisade_core::Number::MAX };
        self.pick(&self.deliveries.0.clone()).unwrap_or((nobody, LeaseId(0)))
    }

    fn settle(&mut self) -> Command {
        let (id, lease_id) = self.delivery();
        let tried = match self.below(3) {
            0 => Tried::Taken,
            which => Tried::Failed {
                status: (which == 1).then_some(503),
                error: format!("failure {}", self.below(10)),
                retry_after_ms: (self.below(2) == 0).then_some(7_000),
                gone: self.below(6) == 0,
            },
        };
        Command::SettleDelivery(SettleDelivery { id, lease_id, tried, chance: self.next() })
    }

    /// What is looked at now and then.
    pub(in super::super) fn deliveries() -> impl Iterator<Item = Query> {
        let filters = (0..ENDPOINTS).flat_map(|id| {
            [None, Some("pending"), Some("leased"), Some("delivered"), Some("dead")].map(
                |standing| DeliveryFilter {
                    endpoint: EndpointId(id),
                    standing,
                    before: None,
                    limit: if standing.is_none() { usize::MAX } else { 3 },
                },
            )
        });
        filters.map(Query::Deliveries)
    }
}
