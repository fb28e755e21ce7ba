//! Notifications that are lost: the journal is looked at all the same.

use std::{sync::Arc, time::Duration};

use palisade_core::{JobId, history::What};
use tokio::sync::broadcast::Receiver;

use crate::{
    Store,
    command::{Answer, BeginBlob, Command, FinishBlob, Pin, Submit},
    conformance::{
        ManualClock,
        bench::{BEGINNING, wish_for},
    },
    events::Batch,
    postgres::{PostgresStore, engine::Engine, open},
};

use super::cluster::Cluster;

/// A job, by a server that notifies nobody.
async fn submit(engine: &Engine, content: &str) -> JobId {
    let digest = palisade_core::Digest::of(content.as_bytes());
    let pin = Pin::Until(BEGINNING.plus_ms(1_000_000));
    let ask =
        async |command: Command| engine.apply_batch(vec![command]).await.answers.remove(0).unwrap();
    let Answer::BeginBlob(place) = ask(BeginBlob { digest, pin }.into()).await else { panic!() };
    let size_bytes = content.len() as u64;
    ask(FinishBlob { digest, generation: place.generation, size_bytes }.into()).await;
    let submit = Submit { wish: wish_for(digest, size_bytes), request_id: None };
    let Answer::Submit(submitted) = ask(submit.into()).await else { panic!() };
    submitted.job
}

async fn next_job(news: &mut Receiver<Batch>) -> JobId {
    loop {
        let batch = tokio::time::timeout(Duration::from_secs(20), news.recv()).await;
        for event in batch.expect("it is told").unwrap().iter() {
            if matches!(event.what, What::Submitted { .. }) {
                return event.job().unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_notified_is_told_all_the_same() {
    let cluster = Cluster::start();
    let database = cluster.database().await;
    let clock = Arc::new(ManualClock::at(BEGINNING));
    let options = cluster.options(&database, clock);
    let listener = PostgresStore::open(options.clone()).await.unwrap();
    let silent = open::engine(&options).await.unwrap();
    let mut news = listener.changes();
    for number in 0..3 {
        let job = submit(&silent, &format!("source {number}")).await;
        assert_eq!(next_job(&mut news).await, job);
    }
    // Nor is anything missed when the connection that listens is ended.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE query LIKE '%LISTEN palisade%' AND pid <> pg_backend_pid()";
    cluster.sql(&database, end).await;
    let job = submit(&silent, "another source").await;
    assert_eq!(next_job(&mut news).await, job);
}
