//! Restarts and gaps: only time in which the store served counts against a lease.

use std::sync::Arc;

use palisade_core::{clock::Clock, history::What, time::granted_span_ms};

use crate::{
    artefacts::Moved,
    conformance::{
        ManualClock,
        bench::{BEGINNING, TTL_MS},
    },
    query::{Query, View},
    sqlite::{GAP_MS, SqliteStore},
    store::Store,
};

use super::driver::Driver;

const WHOLE_MS: u64 = granted_span_ms(TTL_MS);
const HOUR_MS: u64 = 3_600_000;

#[test]
fn leases_granted_in_the_life_just_past_get_a_whole_ttl() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let grant = driver.granted("alice");
    driver.pass_ms(29_000);
    let mut driver = driver.killed_and_restarted(folder.path(), HOUR_MS);
    assert_eq!(driver.left_ms(grant.job.id), WHOLE_MS);
    assert!(driver.claim("bob").grants.is_empty());
    // The same token completes.
    let completed = driver.complete(grant.job.id, grant.pair);
    assert_eq!(completed.completion.token, grant.pair.token);
}

#[test]
fn a_lease_not_renewed_in_the_life_just_past_keeps_what_was_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let renewed = driver.granted("alice");
    let silent = driver.granted("bob");
    let mut driver = driver.killed_and_restarted(folder.path(), HOUR_MS);
    driver.pass_ms(4_000);
    driver.beat("alice", 1, &renewed);
    driver.pass_ms(6_000);
    let mut driver = driver.killed_and_restarted(folder.path(), HOUR_MS);
    assert_eq!(driver.left_ms(renewed.job.id), WHOLE_MS);
    assert_eq!(driver.left_ms(silent.job.id), WHOLE_MS - 10_000);
    // However often it restarts, the dead are kept no longer than that.
    driver.pass_ms(10_000);
    let mut driver = driver.killed_and_restarted(folder.path(), HOUR_MS);
    assert_eq!(driver.left_ms(silent.job.id), WHOLE_MS - 20_000);
    driver.pass_ms(11_000);
    assert_eq!(driver.grant("carol").job.id, silent.job.id);
    assert!(driver.claim("carol").grants.is_empty());
}

#[test]
fn the_first_renewal_of_a_life_is_on_the_disk_before_it_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let grant = driver.granted("alice");
    let mut driver = driver.killed_and_restarted(folder.path(), 1_000);
    // Answered, and then killed at once: no tick, no orderly end.
    driver.beat("alice", 1, &grant);
    driver.now = driver.now.plus_ms(700);
    driver.beat("alice", 2, &grant);
    let driver = driver.killed_and_restarted(folder.path(), HOUR_MS);
    assert_eq!(driver.left_ms(grant.job.id), WHOLE_MS);
    let View::History(history) = driver.engine.query(&Query::History(grant.job.id)).unwrap() else {
        panic!("a history is asked for")
    };
    let renewals =
        history.iter().filter(|(_, event)| matches!(event.what, What::Renewed { .. })).count();
    assert_eq!(renewals, 1, "the second one lived in memory");
}

#[test]
fn later_renewals_cost_the_disk_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let grant = driver.granted("alice");
    let log = folder.path().join("palisade.db-wal");
    let before = std::fs::metadata(&log).unwrap().len();
    for seq in 1..100 {
        driver.beat("alice", seq, &grant);
    }
    assert_eq!(std::fs::metadata(&log).unwrap().len(), before);
}

#[test]
fn a_gap_of_its_own_gives_time_back_before_anything_else_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let grant = driver.granted("alice");
    let silent = driver.granted("bob");
    driver.pass_ms(10_000);
    // Stopped for an hour; what wakes it is somebody who would take everything over.
    driver.now = driver.now.plus_ms(HOUR_MS);
    assert!(driver.claim("carol").grants.is_empty());
    assert_eq!(driver.left_ms(grant.job.id), WHOLE_MS);
    // A second gap: who has not been heard of since the first has only what was left.
    driver.pass_ms(2_000);
    driver.beat("alice", 1, &grant);
    driver.now = driver.now.plus_ms(GAP_MS + 1);
    assert!(driver.claim("carol").grants.is_empty());
    assert_eq!(driver.left_ms(grant.job.id), WHOLE_MS);
    assert_eq!(driver.left_ms(silent.job.id), WHOLE_MS - 2_000);
}

#[test]
fn time_that_is_served_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let grant = driver.granted("alice");
    for _ in 0..8 {
        driver.now = driver.now.plus_ms(GAP_MS);
        driver.engine.apply_batch(Vec::new(), driver.now);
    }
    assert_eq!(driver.grant("bob").job.id, grant.job.id);
}

#[test]
fn the_clock_never_falls_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    driver.now = driver.now.plus_ms(1_234);
    let first = driver.granted("alice").job;
    drop(driver);
    // The wall was set back by an hour meanwhile.
    let clock = Arc::new(ManualClock::at(palisade_core::Timestamp(BEGINNING.0 - HOUR_MS)));
    let store = SqliteStore::open(folder.path(), Arc::<ManualClock>::clone(&clock)).unwrap();
    assert_eq!(store.now(), first.moved_at);
    clock.advance_ms(10);
    assert_eq!(store.now(), first.moved_at.plus_ms(10));
    assert!(clock.now() < store.now());
}

#[test]
fn numbers_are_not_drawn_twice_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut driver = Driver::begin(folder.path());
    let mut last = palisade_core::Number::ZERO;
    for round in 0..5 {
        // A number that went to a blob which was there already is drawn as well.
        driver.bring("the same for all");
        let place = driver.bring(&format!("round {round}"));
        assert!(place.generation > last);
        let grant = driver.granted("alice");
        assert!(grant.pair.token > place.generation);
        last = grant.pair.token;
        driver = driver.killed_and_restarted(folder.path(), 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_end_records_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at(BEGINNING));
    let store = SqliteStore::open(folder.path(), Arc::<ManualClock>::clone(&clock)).unwrap();
    clock.advance_ms(777);
    drop(store);
    let engine = Driver::open(folder.path(), BEGINNING).engine;
    assert_eq!(engine.clock(), BEGINNING.plus_ms(777));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_knows_again_which_artefacts_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let clock = Arc::new(ManualClock::at(BEGINNING));
        SqliteStore::open(folder.path(), clock).unwrap()
    };
    let store = open();
    let id = store.id().unwrap();
    assert_eq!(store.bind_artefacts("first", Moved::No).unwrap(), "first");
    drop(store);
    let store = open();
    assert_eq!(store.id().unwrap(), id);
    assert_eq!(store.bind_artefacts("second", Moved::No).unwrap(), "first");
    assert_eq!(store.bind_artefacts("second", Moved::Yes).unwrap(), "second");
    assert_eq!(store.bind_artefacts("first", Moved::No).unwrap(), "second");
}
