//! A restored older copy, and what the file beside the database makes of it.

use std::sync::Arc;

use palisade_core::Number;

use crate::{
    StoreExt,
    command::{BeginBlob, Pin},
    conformance::{ManualClock, bench::BEGINNING},
    sqlite::{OpenError, SqliteStore, raise_tokens},
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_leaves_half_of_the_numbers_and_is_never_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let answered = draw(&open(folder.path()), "before").await;
    let most = (Number::MAX.get() - answered) / 2;
    for by in [0, most + 1, Number::MAX.get(), u64::MAX] {
        let refused = raise_tokens(folder.path(), by, BEGINNING).unwrap_err();
        assert!(refused.to_string().contains(&most.to_string()), "{refused}");
    }
    let standing = raise_tokens(folder.path(), most, BEGINNING).unwrap();
    assert_eq!(standing.get(), answered + most);
    assert_eq!(draw(&open(folder.path()), "after").await, standing.get() + 1);
}

#[test]
fn a_raise_makes_no_store_where_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let refused = raise_tokens(&nowhere, 1, BEGINNING).unwrap_err();
    assert!(refused.to_string().contains("nowhere"), "{refused}");
    assert!(!nowhere.exists());
    let refused = raise_tokens(folder.path(), 1, BEGINNING).unwrap_err();
    assert!(matches!(refused, OpenError::NoStore { .. }), "{refused}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    std::fs::write(folder.path().join("palisade.db"), "").unwrap();
    let refused = raise_tokens(folder.path(), 1, BEGINNING).unwrap_err();
    assert!(matches!(refused, OpenError::NoStore { .. }), "{refused}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
