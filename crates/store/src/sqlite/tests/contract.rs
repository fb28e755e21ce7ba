//! The suite that every store passes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sqlite::SqliteStore;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let next = AtomicU64::new(0);
    crate::conformance::exercise(|clock| {
        let store = folder.path().join(next.fetch_add(1, Ordering::SeqCst).to_string());
        SqliteStore::open(&store, clock).unwrap()
    })
    .await;
}
