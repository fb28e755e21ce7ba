//! Notifications across crashes: between every two steps of a delivery the process is killed, and
//! the receiver is told again, the same, until the settlement is on the disk.

use std::os::unix::fs::PermissionsExt;

use palisade_core::{
    LeaseId,
    outbox::{Delivery, EndpointId, EventId, Standing, Tried},
};

use crate::{
    command::{
        CreateEndpoint, LeaseDeliveries, LeasedDeliveries, SettleDelivery, Settlement, ToDeliver,
    },
    conformance::outbox::endpoint,
    query::{DeliveryFilter, Query, View},
};

use super::driver::Driver;

const LEASE_MS: u64 = 20_000;

fn lease(driver: &mut Driver) -> Option<ToDeliver> {
    let lease_ids = vec![LeaseId(driver.fresh())];
    let asked = LeaseDeliveries { lease_ids, endpoint_max: 1, ttl_ms: LEASE_MS };
    let LeasedDeliveries { mut leased, .. } = driver.run(asked);
    leased.pop()
}

fn settle(driver: &mut Driver, of: &ToDeliver) -> Settlement {
    let (id, lease_id) = (of.delivery.id(), of.lease_id);
    driver.run(SettleDelivery { id, lease_id, tried: Tried::Taken, chance: 0 })
}

fn rows(driver: &Driver) -> Vec<Delivery> {
    let endpoint = EndpointId(1);
    let filter = DeliveryFilter { endpoint, standing: None, before: None, limit: 10 };
    match driver.engine.query(&Query::Deliveries(filter)).unwrap() {
        View::Deliveries(rows) => rows,
        other => panic!("{other:?}"),
    }
}

/// A receiver, as the documents say: what it has seen of an id is dropped.
#[derive(Default)]
struct Receiver {
    requests: Vec<(EventId, String)>,
}

impl Receiver {
    fn take(&mut self, one: &ToDeliver) {
        self.requests.push((one.delivery.id(), one.delivery.notice.body.clone()));
    }
}

/// After which step the process is killed.
const STEPS: [&str; 4] = ["committed", "leased", "sent", "settled"];

#[test]
fn killed_between_any_two_steps_it_is_delivered_at_least_once_and_always_the_same() {
    for killed_after in STEPS {
        let folder = tempfile::tempdir().unwrap();
        let mut driver = Driver::begin(folder.path());
        driver.run(CreateEndpoint { endpoint: endpoint(1) });
        let grant = driver.granted("alice");
        driver.complete(grant.job.id, grant.pair);
        let mut receiver = Receiver::default();
        if killed_after == "committed" {
            driver = driver.killed_and_restarted(folder.path(), 1);
        }
        let one = lease(&mut driver).expect("it is due");
        if killed_after != "leased" {
            receiver.take(&one);
        }
        if killed_after == "settled" || killed_after == "committed" {
            assert_eq!(settle(&mut driver, &one), Settlement::Recorded);
        }
        driver = driver.killed_and_restarted(folder.path(), LEASE_MS);
        while let Some(again) = lease(&mut driver) {
            receiver.take(&again);
            assert_eq!(settle(&mut driver, &one), Settlement::Ignored, "{killed_after}");
            assert_eq!(settle(&mut driver, &again), Settlement::Recorded);
        }
        let twice = killed_after == "sent";
        assert_eq!(receiver.requests.len(), 1 + usize::from(twice), "{killed_after}");
        receiver.requests.dedup();
        assert_eq!(receiver.requests.len(), 1, "the same id, the same body: {killed_after}");
        let rows = rows(&driver);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].notice.token, Some(grant.pair.token));
        assert_eq!((rows[0].id(), rows[0].standing), (receiver.requests[0].0, Standing::Delivered));
    }
}

#[test]
fn a_completion_that_is_rolled_back_leaves_no_notification() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    driver.run(CreateEndpoint { endpoint: endpoint(1) });
    let grant = driver.granted("alice");
    // The row cannot be written, so the move that it tells of is not made either.
    driver.engine.run_sql("DROP INDEX outbox_order").unwrap();
    driver
        .engine
        .run_sql(
            "CREATE TRIGGER no_room BEFORE INSERT ON outbox BEGIN \
                           SELECT RAISE(ABORT, 'no room'); END",
        )
        .unwrap();
    let content = "output";
    driver.bring(content);
    let complete = crate::command::Complete {
        job: grant.job.id,
        pair: grant.pair,
        manifest: crate::conformance::bench::manifest(content),
    };
    assert!(driver.try_run(complete.clone()).is_err());
    assert_eq!(driver.job(grant.job.id).state, palisade_core::job::JobState::Running);
    driver.engine.run_sql("DROP TRIGGER no_room").unwrap();
    driver.run(complete);
    assert_eq!(rows(&driver).len(), 1);
}

#[test]
fn what_is_told_cannot_be_changed_past_the_rules() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    driver.run(CreateEndpoint { endpoint: endpoint(1) });
    let grant = driver.granted("alice");
    driver.complete(grant.job.id, grant.pair);
    for change in ["body = '{}'", "seq = seq + 1", "token = NULL", "submission = 1 + submission"] {
        assert!(driver.engine.run_sql(&format!("UPDATE outbox SET {change}")).is_err(), "{change}");
    }
}

#[test]
fn what_is_due_is_found_by_an_index_also_among_many_that_are_over() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::begin(folder.path());
    for (sql, index) in [
        (crate::sqlite::records::outbox::due_sql(), "outbox_due"),
        (crate::sqlite::records::outbox::due_sql(), "outbox_order"),
        (crate::sqlite::records::outbox::next_sql(), "outbox_next"),
    ] {
        let plan = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = driver.engine.connection.prepare(&plan).unwrap();
        let count = statement.parameter_count();
        let values = rusqlite::params_from_iter(vec![1_i64; count]);
        let lines = statement.query_map(values, |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<_> = lines.map(Result::unwrap).collect();
        assert!(plan.iter().any(|line| line.contains(index)), "{index}: {plan:#?}");
        assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{plan:#?}");
    }
}

#[test]
fn the_database_with_its_secrets_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        let path = folder.path().join(name);
        path.metadata().map(|meta| meta.permissions().mode() & 0o777).ok()
    };
    let set = |name: &str| {
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(folder.path().join(name), open).unwrap();
    };
    let mut driver = Driver::begin(folder.path());
    driver.run(CreateEndpoint { endpoint: endpoint(1) });
    let files = ["palisade.db", "palisade.db-wal", "palisade.db-shm"];
    assert_eq!(files.map(mode), [Some(0o600); 3]);
    // Made by an older version.
    for name in files {
        set(name);
    }
    let driver = driver.killed_and_restarted(folder.path(), 1);
    assert_eq!(files.map(mode), [Some(0o600); 3]);
    drop(driver);
}
