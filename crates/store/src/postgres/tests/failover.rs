//! A fail-over to a copy that had not got the last transactions: what was answered in them is lost,
//! and their numbers are not drawn again.

use palisade_core::{LeaseId, Refusal, lease::Pair};

use crate::{
    Failure, StoreExt,
    command::{Complete, Grant},
    conformance::{Bench, bench::manifest},
    postgres::{JUMP, PostgresStore},
};

use super::{
    cluster::Cluster,
    faults::{insist, open, wish},
};

async fn complete(bench: &Bench<PostgresStore>, grant: &Grant) -> Result<(), Failure> {
    let content = format!("output of {}", grant.pair.lease_id.0);
    wish(bench, &content).await;
    let verb = Complete { job: grant.job.id, pair: grant.pair, manifest: manifest(&content) };
    bench.store.run(verb).await.map(drop)
}

/// Claims the only job that waits.
async fn claim(bench: &Bench<PostgresStore>, worker: &str) -> Grant {
    insist(bench, bench.claim_of(worker, 1)).await.grants.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fail_over_that_lost_grants_gives_their_numbers_to_nobody() {
    let mut cluster = Cluster::with(&["restore_command=false"]);
    let database = cluster.database().await;
    let before = open(&cluster, &database).await;
    let wished = wish(&before, "source").await;
    let job = before.submit(&wished).await.job;
    let copy = cluster.home().join("copy");
    tokio::task::block_in_place(|| {
        cluster.stop_at_once();
        let mut cp = cluster.plain("cp");
        assert!(cp.arg("-a").arg(cluster.data()).arg(&copy).status().unwrap().success());
        cluster.go_on();
    });
    // What the copy does not get: a grant, and more numbers than a sequence logs ahead.
    let lost = claim(&before, "alice").await;
    for number in 0..50 {
        wish(&before, &format!("more {number}")).await;
    }
    drop(before);
    tokio::task::block_in_place(|| {
        cluster.stop_at_once();
        std::fs::remove_dir_all(cluster.data()).unwrap();
        std::fs::rename(&copy, cluster.data()).unwrap();
        // It comes up as a standby does that is promoted: on a timeline of its own.
        std::fs::write(cluster.data().join("recovery.signal"), "").unwrap();
        cluster.go_on();
    });
    // A server that has seen nothing of it: only the database can tell.
    let after = open(&cluster, &database).await;
    let won = claim(&after, "bob").await;
    assert_eq!((won.job.id, lost.job.id), (job, job));
    // Whoever compares numbers alone refuses alice from now on.
    assert!(won.pair.token.get() > lost.pair.token.get() + JUMP / 2, "{won:?} after {lost:?}");
    let refused = complete(&after, &lost).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::UnknownToken { .. }))), "{refused:?}");
    complete(&after, &won).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_that_nobody_noticed_is_caught_by_the_lease_id() {
    let cluster = Cluster::start();
    let database = cluster.database().await;
    let bench = open(&cluster, &database).await;
    let wished = wish(&bench, "source").await;
    bench.submit(&wished).await;
    let won = claim(&bench, "bob").await;
    // A number that was drawn twice: alice has the same token, from a history that is lost.
    let pair = Pair { token: won.pair.token, lease_id: LeaseId(won.pair.lease_id.0 ^ 1) };
    let twin = Grant { pair, ..won.clone() };
    let refused = complete(&bench, &twin).await;
    assert!(matches!(refused, Err(Failure::Refused(Refusal::UnknownToken { .. }))), "{refused:?}");
    complete(&bench, &won).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_went_backwards_unnoticed_grants_nothing_below_a_fence() {
    let cluster = Cluster::start();
    let database = cluster.database().await;
    let bench = open(&cluster, &database).await;
    let wished = wish(&bench, "source").await;
    bench.submit(&wished).await;
    let grant = claim(&bench, "alice").await;
    bench.store.run(Bench::<PostgresStore>::release_of(&grant)).await.unwrap();
    cluster.sql(&database, "SELECT setval('counter', 1)").await;
    let refused = bench.store.run(bench.claim_of("bob", 1)).await;
    let Err(Failure::Unavailable(message)) = refused else { panic!("{refused:?}") };
    assert!(message.contains("tokens raise"), "{message}");
}
