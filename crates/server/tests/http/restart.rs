//! The server over what it runs on in earnest: SQLite, files, the system's clock; ended and
//! started again.

use std::{path::Path, sync::Arc, time::Duration};

use palisade_artefacts::LocalBlobs;
use palisade_core::{Timestamp, clock::Clock};
use palisade_server::SystemClock;
use palisade_store::sqlite::SqliteStore;

use crate::support::{House, TestClock, beat, config, eventually, raw};

async fn house(folder: &Path) -> House {
    // The tasks of a server that was dropped end when they are looked at next.
    let store =
        eventually(|| async { SqliteStore::open(folder, Arc::new(SystemClock::new())).ok() }).await;
    let blobs = LocalBlobs::open(folder.join("blobs")).await.unwrap();
    House::of(config(), Arc::new(store), Arc::new(blobs), TestClock::new()).await
}

#[tokio::test]
async fn what_was_answered_is_there_after_the_server_was_ended_and_the_lease_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let before = house(folder.path()).await;
    let client = before.client.clone();
    let claim = before.claim("s1", "c1", 60_000);
    let claim = tokio::spawn(async move { client.claim(&claim).await.unwrap() });
    before.until_waiting(1).await;
    let job = before.submit(b"film").await.job;
    let [grant] = claim.await.unwrap().grants.try_into().unwrap();
    // Not stopped: dropped, as in a crash. Its store is given up with it.
    drop(before);

    let after = house(folder.path()).await;
    let beat = beat("s1", 1, &[&grant]);
    let held = after.client.heartbeat(&beat, Duration::from_secs(9)).await.unwrap();
    assert_eq!(serde_json::to_value(held.leases[0].status).unwrap(), "held");
    after.finish(&grant, b"the copy").await;
    let view = after.client.wait(&job, Duration::from_secs(30)).await.unwrap();
    assert_eq!((view.state.as_str(), view.attempts.len()), ("complete", 1));
    assert!(after.server.stop().await);
    drop((after.store, after.blobs));
    // A server that was stopped has let go of its store.
    drop(SqliteStore::open(folder.path(), Arc::new(SystemClock::new())).unwrap());

    let last = house(folder.path()).await;
    let path = format!("/v1/jobs/{job}/outputs/copy.mp4");
    let answer = raw::ask(&last.server, raw::Request::new("GET", &path)).await;
    assert_eq!(answer.text(), "the copy");
}

#[test]
fn the_systems_clock_agrees_with_the_wall_and_does_not_stand() {
    let clock = SystemClock::new();
    let first = clock.now();
    // Some day after this was written, and not in microseconds.
    assert!(first > Timestamp(1_700_000_000_000) && first < Timestamp(10_000_000_000_000));
    while clock.now() <= first.plus_ms(2) {
        std::hint::spin_loop();
    }
}
