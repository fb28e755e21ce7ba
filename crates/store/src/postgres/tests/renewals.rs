//! Renewals by the hundred: the table of leases does not grow by them.

use super::{
    cluster::Cluster,
    faults::{open, wish},
};
use crate::{StoreExt, conformance::bench::heartbeat};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_leave_the_table_of_leases_as_large_as_it_is() {
    const RENEWALS: u64 = 300;
    let cluster = Cluster::start();
    let database = cluster.database().await;
    let bench = open(&cluster, &database).await;
    for number in 0..40 {
        let wish = wish(&bench, &format!("source {number}")).await;
        bench.submit(&wish).await;
    }
    let claim = bench.claim_of("alice", 40);
    let grants = bench.claim(&claim).await.grants;
    assert_eq!(grants.len(), 40);
    let address = cluster.address(&database);
    let (client, connection) = address.config.connect(address.tls()).await.unwrap();
    let driver = tokio::spawn(connection);
    for seq in 1..=RENEWALS {
        let beats =
            bench.store.run(heartbeat("alice", seq + 1, &grants.iter().collect::<Vec<_>>()));
        assert!(beats.await.unwrap().leases.iter().all(Option::is_some));
        if seq % 100 == 0 {
            // What the database does by itself once a minute.
            client.batch_execute("VACUUM leases").await.unwrap();
        }
    }
    let sql = "SELECT pg_relation_size('leases') + pg_indexes_size('leases')";
    let size: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    // 40 leases, and the versions that a hundred renewals leave between two rounds of vacuum.
    assert!(size < 2 * 1024 * 1024, "{size}");
    drop(client);
    driver.await.unwrap().unwrap();
}
