//! A bucket in memory under the suite, and buckets that cannot do what a register needs.

use std::{future::ready, sync::Arc};

use object_store::{ObjectStore, ObjectStoreExt as _, memory::InMemory, path::Path};

use super::BucketCells;
use crate::{
    conformance::cells::{Bench, key},
    register::{CompareAndSwap, probe},
};

crate::register_conformance!(ready(Bench {
    cells: Arc::new(BucketCells::new(Arc::new(InMemory::new()), Path::from("some/registers"))),
    keep: Box::new(())
}));

#[tokio::test]
async fn a_probe_of_a_bucket_leaves_nothing_but_its_registers_when_swept() {
    let bucket = Arc::new(InMemory::new());
    let store = Arc::clone(&bucket);
    let cells = BucketCells::new(store, Path::from("registers"));
    cells.swap(&key("mine"), None, "kept".into()).await;
    let stranger = Path::from(".probe/of-another-prefix");
    bucket.put(&stranger, "kept".into()).await.expect("put");
    let count = async || futures_util::StreamExt::count(bucket.list(None)).await;
    probe::probe(Arc::new(cells.clone()), 1).await.expect("no liar");
    let of_one = count().await;
    assert!(of_one > 2, "the probe wrote something");
    probe::probe(Arc::new(cells.clone()), 2).await.expect("no liar");
    cells.sweep_probe(2).await.expect("swept");
    assert_eq!(count().await, of_one, "another server's probe is left alone");
    cells.sweep_probe(1).await.expect("swept");
    assert_eq!(count().await, 2, "what the probes wrote, and nothing else, is gone");
}

#[tokio::test]
async fn an_object_too_large_for_a_cell_is_an_error_and_is_not_read() {
    let bucket = Arc::new(InMemory::new());
    bucket.put(&Path::from("r/huge"), vec![b' '; 70_000].into()).await.expect("put");
    let cells = BucketCells::new(bucket, Path::from("r"));
    let refused = cells.read(&key("huge")).await.expect_err("too large");
    assert_eq!(refused.to_string(), "InMemory/r could not take for a cell");
}
