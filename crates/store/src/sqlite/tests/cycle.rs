//! The plain way through.

use std::sync::Arc;

use palisade_core::{job::JobState, transition::Beat};

use crate::{
    StoreExt,
    conformance::{Bench, bench},
    query::{Query, View},
    sqlite::SqliteStore,
    store::Store,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_goes_from_submit_to_complete_and_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new("cycle", |clock| SqliteStore::open(folder.path(), clock).unwrap());
    let mut changes = bench.store.changes();
    let id = bench.new_job().await;
    assert_eq!(changes.recv().await.unwrap()[0].job(), Some(id));
    let grant = bench.grant("alice").await;
    assert_eq!(grant.job.id, id);
    let beats = bench.store.run(bench::heartbeat("alice", 1, &[&grant])).await.unwrap();
    assert_eq!(beats.leases, [Some(Beat::Held)]);
    let complete = bench.complete_of(&grant).await;
    let completed = bench.store.run(complete.clone()).await.unwrap();
    assert_eq!(completed.completion.manifest, complete.manifest);
    let before = bench.job(id).await;
    assert_eq!(before.state, JobState::Complete);
    let history = bench.store.query(Query::History(id)).await.unwrap();

    let clock = Arc::clone(&bench.clock);
    drop(bench);
    let store = SqliteStore::open(folder.path(), clock).unwrap();
    assert_eq!(store.query(Query::Job(id)).await.unwrap(), View::Job(Some(Box::new(before))));
    assert_eq!(store.query(Query::History(id)).await.unwrap(), history);
    let again = store.run(complete).await.unwrap();
    assert_eq!(again.completion, completed.completion);
}
