//! The suite that every store passes.

use tokio::runtime::Handle;

use super::cluster::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_the_contract() {
    let cluster = Cluster::start();
    crate::conformance::exercise(|clock| {
        tokio::task::block_in_place(|| Handle::current().block_on(cluster.store(clock)))
    })
    .await;
}
