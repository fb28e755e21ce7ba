//! What is done under a grant is done before that grant is closed; and what a crash of a single
//! backend takes away is noticed.

use std::{sync::Arc, time::Duration};

use crate::{
    Store, StoreExt,
    conformance::{
        locks::{hold, let_go},
        objects::{key, put, write},
    },
    query::{Query, View},
};

use super::{
    cluster::Cluster,
    faults::{insist, open, wish},
};

/// How many transactions wait for another's row.
async fn waiting(client: &tokio_postgres::Client) -> i64 {
    let sql = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

async fn until_so_many_wait(client: &tokio_postgres::Client, count: i64) {
    while waiting(client).await < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_not_let_go_while_something_is_written_under_it() {
    let cluster = Cluster::start();
    let database = cluster.database().await;
    let [writer, closer] =
        [Arc::new(open(&cluster, &database).await), Arc::new(open(&cluster, &database).await)];
    let alice = hold(&*writer, "door", "alice").await;
    write(&*writer, alice, "first").await.expect("alice may");
    let second = crate::command::PutObject { op: 2, ..put(&*writer, alice, "second").await };
    let address = cluster.address(&database);
    let (client, connection) = address.config.connect(address.tls()).await.unwrap();
    let driver = tokio::spawn(connection);
    let (observer, watching) = address.config.connect(address.tls()).await.unwrap();
    tokio::spawn(watching);
    // Somebody else has the object's row; the write stands before it with its grant read.
    client.batch_execute("BEGIN; SELECT 1 FROM objects FOR UPDATE").await.unwrap();
    let written = tokio::spawn(async move { writer.store.run(second).await });
    until_so_many_wait(&observer, 1).await;
    let closing = Arc::clone(&closer);
    let mut closed = tokio::spawn(async move { let_go(&*closing, "door", alice).await });
    tokio::select! {
        () = until_so_many_wait(&observer, 2) => {}
        _ = &mut closed => panic!("the lock was let go in the middle of a write"),
    }
    client.batch_execute("COMMIT").await.unwrap();
    let written = written.await.unwrap().expect("it was written under the lock");
    closed.await.unwrap();
    let bob = hold(&*closer, "door", "bob").await;
    let View::Object(Some(object)) =
        closer.store.query(Query::Object(key("report"))).await.unwrap()
    else {
        panic!("it is there")
    };
    assert!(object.last.version < bob.token, "all of alice's came before bob");
    assert_eq!(object.last.version, written.object.last.version);
    drop(client);
    driver.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_come_back_after_a_crash_of_a_single_backend() {
    let cluster = Cluster::with(&[]);
    let database = cluster.database().await;
    let bench = open(&cluster, &database).await;
    let source = wish(&bench, "a source").await;
    bench.submit(&source).await;
    let grant = bench.grant("alice").await;
    let address = cluster.address(&database);
    let (client, connection) = address.config.connect(address.tls()).await.unwrap();
    let driver = tokio::spawn(connection);
    let row = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
    let pid = rustix::process::Pid::from_raw(row.get(0)).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // The server ends all of its backends, recovers, and serves on as the same.
    assert!(driver.await.unwrap().is_err());
    let claimed = insist(&bench, bench.claim_of("bob", 1)).await;
    assert!(claimed.grants.is_empty());
    let View::Leases(leases) = bench.store.query(Query::Leases).await.unwrap() else {
        panic!("they are answered")
    };
    assert_eq!(leases.len(), 1, "{leases:?}");
    assert_eq!(bench.job(grant.job.id).await.attempts.len(), 1);
}
