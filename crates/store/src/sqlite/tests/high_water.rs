//! A restored older copy, and what the file beside the database makes of it.

use std::sync::Arc;

use crate::{
    StoreExt,
    command::{BeginBlob, Pin},
    conformance::{ManualClock, bench::BEGINNING},
    sqlite::{SqliteStore, raise_tokens},
};

async fn draw(store: &SqliteStore, content: &str) -> u64 {
    let digest = palisade_core::Digest::of(content.as_bytes());
    let pin = Pin::Until(BEGINNING.plus_ms(1_000_000));
    store.run(BeginBlob { digest, pin }).await.unwrap().generation.get()
}

fn open(folder: &std::path::Path) -> SqliteStore {
    SqliteStore::open(folder, Arc::new(ManualClock::at(BEGINNING))).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_older_database_draws_no_number_a_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("palisade.db");
    let store = open(folder.path());
    draw(&store, "before the copy").await;
    drop(store);
    let copy = std::fs::read(&database).unwrap();
    let store = open(folder.path());
    let answered = draw(&store, "after the copy").await;
    drop(store);
    std::fs::write(&database, copy).unwrap();
    let drawn = draw(&open(folder.path()), "after the restore").await;
    assert!(drawn > answered + (1 << 31), "{drawn} after {answered}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_without_a_loss_does_not_jump() {
    let folder = tempfile::tempdir().unwrap();
    let answered = draw(&open(folder.path()), "before").await;
    let drawn = draw(&open(folder.path()), "after").await;
    assert!(drawn > answered && drawn < answered + 100, "{drawn} after {answered}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_raises_the_counter_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let answered = draw(&open(folder.path()), "before").await;
    let standing = raise_tokens(folder.path(), 1_000, BEGINNING).unwrap();
    assert_eq!(standing.get(), answered + 1_000);
    assert!(draw(&open(folder.path()), "after").await > standing.get());
}
