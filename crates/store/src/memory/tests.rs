//! The reference passes the suite that it is the reference for.

use super::MemoryStore;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_keeps_the_contract() {
    crate::conformance::exercise(MemoryStore::new).await;
}
