//! What a commit owes to the outside, carried out from the committed record by the store's own
//! commands: publications, then notifications. The server may die between any two steps; what it
//! remembers of them dies with it.

use std::collections::BTreeMap;

use palisade_core::{
    LeaseId, Tenant, Timestamp,
    history::{Joined, What},
    outbox::{Endpoint, EndpointId, EventId, EventType, Secret, Tried},
};
use palisade_store::{
    command::{
        Answer, Command, CreateEndpoint, LeaseDeliveries, LeasedDeliveries, Publish, SettleDelivery,
    },
    query::{DeliveryFilter, Query, View},
};

use crate::{
    designs::Effects,
    engine::{Engine, jobs_of},
    random::Dice,
    sim::{
        network::{Address, Body, Message},
        outside::{ENDPOINTS, Letter, Receipt},
        world::World,
    },
};

use super::{Running, ServerEvent};

/// How long a row is the deliverer's, in ms: longer than a try can take.
const LEASE_MS: u64 = 15_000;
/// How long a try waits for its answer, in ms.
const PATIENCE_MS: u64 = 10_000;
/// Most rows leased at once, and most of one endpoint that are tried at once.
const ROWS: usize = 4;
/// Most publications in one command.
const PUBLICATIONS: usize = 2;
/// Most entries of the journal that are read at once.
const ENTRIES: usize = 1_000;

/// What the server remembers of what it projects.
#[derive(Debug)]
pub(crate) struct Projector {
    dice: Dice,
    /// Tries under way, by call.
    tries: BTreeMap<u64, (EventId, LeaseId)>,
    /// Whether something may be owed that was not looked at.
    pub wake: bool,
    next_at: Option<Timestamp>,
    /// How far the journal was read.
    read_up_to: u64,
}

impl Projector {
    /// One that has everything before it.
    pub(super) fn new(dice: Dice) -> Self {
        Self { dice, tries: BTreeMap::new(), wake: true, next_at: None, read_up_to: 0 }
    }

    /// The process died.
    pub(super) fn forget(&mut self) {
        self.tries.clear();
        self.wake = true;
        self.next_at = None;
    }
}

/// The customer's database and mail box want to be told of every end of a job.
pub(super) fn create_endpoints(engine: &mut dyn Engine, now: Timestamp) {
    for (id, _) in ENDPOINTS {
        let endpoint = Endpoint {
            id,
            tenant: Tenant::default_tenant(),
            url: format!("https://customer.example/{id}"),
            events: [EventType::Completed, EventType::Failed, EventType::Cancelled].into(),
            secret: Secret::new([7; 32]),
            previous: None,
            created_at: now,
        };
        let create = Command::CreateEndpoint(CreateEndpoint { endpoint });
        engine.apply(&create, now).expect("an empty store takes an endpoint");
    }
    engine.commit();
}

/// An endpoint's rows that stand so.
pub(crate) fn rows(
    engine: &dyn Engine,
    endpoint: EndpointId,
    standing: Option<&'static str>,
    limit: usize,
) -> Vec<palisade_core::outbox::Delivery> {
    let filter = DeliveryFilter { endpoint, standing, before: None, limit };
    match engine.query(&Query::Deliveries(filter)) {
        View::Deliveries(rows) => rows,
        _ => Vec::new(),
    }
}

impl World {
    /// Looks at what was committed since the last time: names that changed, and whether there is
    /// something to tell.
    pub(super) fn read_journal(&mut self) {
        if self.design.effects() != Effects::Projected {
            return;
        }
        let after = self.server.projector.read_up_to;
        let asked = Query::Events { after, limit: ENTRIES };
        let View::Events(events) = self.server.engine.query(&asked) else { return };
        for (position, event) in events {
            self.server.projector.read_up_to = position;
            match event.what {
                What::Moved { state, .. } if !state.is_live() => self.server.projector.wake = true,
                What::Submitted { how: Joined::Cached, .. } | What::NotificationAgain(_) => {
                    self.server.projector.wake = true;
                }
                What::Published { key, .. } => self.look_at_name(&key),
                _ => {}
            }
        }
    }

    /// An outsider fetches what is published under a name.
    fn look_at_name(&mut self, key: &palisade_core::ObjectKey) {
        let resolved = self.server.engine.query(&Query::Resolve(key.clone()));
        if let View::Resolve(Some(resolved)) = resolved {
            self.outside.sees(key.as_str(), &resolved, self.now);
        }
    }

    /// Carries out what is due, if something may be.
    pub(super) fn project(&mut self) {
        let projects = self.design.effects() == Effects::Projected;
        if !projects || self.server.running != Running::Yes {
            return;
        }
        let now = self.server.clock(self.now, self.design);
        let projector = &mut self.server.projector;
        let is_due = projector.next_at.is_some_and(|at| at <= now);
        if !std::mem::take(&mut projector.wake) && !is_due {
            return;
        }
        if self.dies("between the commit and what it owes") {
            return;
        }
        self.publish(now);
        if !self.dies("between publishing and telling") {
            self.lease_rows(true);
        }
    }

    fn publish(&mut self, now: Timestamp) {
        loop {
            self.may_fill_disk();
            let asked = Command::Publish(Publish { limit: PUBLICATIONS });
            let answer = self.server.engine.apply(&asked, now);
            self.server.engine.commit();
            self.read_journal();
            match answer {
                Ok(Answer::Publish(done)) if done.more => {}
                Ok(_) => return,
                // The next tick looks again.
                Err(_) => {
                    self.server.projector.wake = true;
                    return;
                }
            }
        }
    }

    /// Takes what is due, and sends it. What is not durable is only ever sent by a sabotage.
    pub(super) fn lease_rows(&mut self, durable: bool) {
        let now = self.server.clock(self.now, self.design);
        let dice = &mut self.server.projector.dice;
        let lease_ids: Vec<_> = (0..ROWS).map(|_| LeaseId(dice.next_u128())).collect();
        let asked = LeaseDeliveries { lease_ids, endpoint_max: ROWS, ttl_ms: LEASE_MS };
        if durable {
            self.may_fill_disk();
        }
        let answer = self.server.engine.apply(&Command::LeaseDeliveries(asked), now);
        let Ok(Answer::LeaseDeliveries(LeasedDeliveries { leased, next_at, .. })) = answer else {
            self.server.projector.wake = true;
            return;
        };
        if durable {
            self.server.engine.commit();
        }
        self.server.projector.next_at = next_at;
        self.server.projector.wake |= leased.len() == ROWS;
        for one in leased {
            if durable && self.dies("between taking a row and sending it") {
                return;
            }
            let call = self.new_call();
            let id = one.delivery.id();
            self.server.projector.tries.insert(call, (id, one.lease_id));
            let letter = Box::new(Letter { id, body: one.delivery.notice.body });
            let (from, to) = (Address::Server, Address::Outside);
            self.send(Message { from, to, call, body: Body::Letter(letter) });
            self.after_server(PATIENCE_MS, ServerEvent::Heard(call, Receipt::NotNow));
        }
    }

    /// A try was answered, or was not in time.
    pub(super) fn settle(&mut self, call: u64, receipt: Receipt) {
        let Some((id, lease_id)) = self.server.projector.tries.remove(&call) else { return };
        if self.dies("between hearing of a delivery and settling it") {
            return;
        }
        let tried = match receipt {
            Receipt::Done | Receipt::Stale => Tried::Taken,
            Receipt::NotNow => Tried::Failed {
                status: None,
                error: "no answer".to_owned(),
                retry_after_ms: None,
                gone: false,
            },
        };
        let chance = self.server.projector.dice.draw();
        let settle = SettleDelivery { id, lease_id, tried, chance };
        self.may_fill_disk();
        // Not settled, its lease runs out, and it is sent again.
        self.housekeep(&Command::SettleDelivery(settle));
        self.server.projector.wake = true;
        if !self.dies("after a delivery was settled") {
            self.project();
        }
    }

    /// Whether it dies here.
    fn dies(&mut self, when: &str) -> bool {
        let rate = self.plan.server_crash;
        let dies = !self.healed && self.server.projector.dice.per_mille(rate);
        if dies {
            self.crash_server(when);
        }
        dies
    }

    fn may_fill_disk(&mut self) {
        let rate = self.plan.disk_full;
        if !self.healed && self.server.projector.dice.per_mille(rate) {
            self.server.engine.fill_disk();
        }
    }

    /// Whether nothing is to be published or told any more.
    pub(in crate::sim) fn owes_nothing(&self) -> bool {
        if self.design.effects() != Effects::Projected {
            return true;
        }
        let engine = &*self.server.engine;
        let none = |endpoint, standing| rows(engine, endpoint, Some(standing), 1).is_empty();
        let open = ["pending", "leased", "dead"];
        let told = ENDPOINTS.iter().all(|(id, _)| open.iter().all(|standing| none(*id, standing)));
        told && jobs_of(engine).iter().all(|job| job.publications_due().next().is_none())
    }
}
