//! What every [`CompareAndSwap`] must do.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::Barrier;

use crate::register::{Cell, CompareAndSwap, Key, Swap, Version};

const RACERS: usize = 50;

/// The cells under test, empty at first, and whatever must live as long as they do.
#[derive(Debug)]
pub struct Bench {
    /// The cells.
    pub cells: Arc<dyn CompareAndSwap>,
    /// Kept until the test ends: a folder, a server.
    pub keep: Box<dyn std::fmt::Debug + Send + Sync>,
}

/// A key.
pub fn key(text: &str) -> Key {
    text.parse().expect("a test's key is one")
}

async fn read(bench: &Bench, at: &Key) -> Cell {
    bench.cells.read(at).await.expect("read").expect("there")
}

async fn assert_swapped(bench: &Bench, at: &Key, expected: Option<&Version>, bytes: &Bytes) {
    let swap = bench.cells.swap(at, expected, bytes.clone()).await;
    assert!(matches!(swap, Swap::Swapped), "{swap:?}");
}

async fn assert_conflict(bench: &Bench, at: &Key, expected: Option<&Version>) {
    let swap = bench.cells.swap(at, expected, Bytes::from_static(b"must not come")).await;
    assert!(matches!(swap, Swap::Conflict), "{swap:?}");
}

/// From absence, and from version to version.
pub async fn what_was_swapped_in_is_read_back(bench: &Bench) {
    let at = key("a/register");
    assert_eq!(bench.cells.read(&at).await.expect("read"), None, "nobody wrote yet");
    let mut version = None;
    for size in [1, 0, 300, 20_000] {
        let bytes = Bytes::from(super::blobs::sample(size, 1));
        assert_swapped(bench, &at, version.as_ref(), &bytes).await;
        let cell = read(bench, &at).await;
        assert_eq!(cell.bytes, bytes);
        assert_ne!(Some(&cell.version), version.as_ref(), "other bytes have another version");
        assert_eq!(read(bench, &at).await, cell, "reading changes nothing");
        version = Some(cell.version);
    }
}

/// Names that file systems and buckets could mix up.
pub async fn cells_of_different_keys_are_apart(bench: &Bench) {
    let long = format!("{}/{}", "x".repeat(250), "y".repeat(250));
    let keys = ["a", "a/b", "a/b/c", "a.b", "A", "a-b", "a:b", long.as_str()].map(key);
    for at in &keys {
        let bytes = Bytes::from(format!("of {at}"));
        assert_swapped(bench, at, None, &bytes).await;
    }
    for at in &keys {
        assert_eq!(read(bench, at).await.bytes, format!("of {at}"));
    }
}

/// Creating is not replacing.
pub async fn a_cell_that_is_there_is_not_created_again(bench: &Bench) {
    let at = key("once");
    assert_swapped(bench, &at, None, &Bytes::from_static(b"first")).await;
    assert_conflict(bench, &at, None).await;
    assert_eq!(read(bench, &at).await.bytes, "first");
}

/// A version that has passed does not come back.
pub async fn a_swap_on_an_old_version_is_refused(bench: &Bench) {
    let at = key("versions");
    let mut old = Vec::new();
    let mut version = None;
    for count in 0..4 {
        let bytes = Bytes::from(format!("bytes {count}"));
        assert_swapped(bench, &at, version.as_ref(), &bytes).await;
        version = Some(read(bench, &at).await.version);
        old.extend(version.clone());
    }
    old.pop();
    for passed in &old {
        assert_conflict(bench, &at, Some(passed)).await;
    }
    assert_eq!(read(bench, &at).await.bytes, "bytes 3");
}

/// A condition on a version is not met by absence.
pub async fn a_swap_on_a_cell_that_is_not_there_is_refused(bench: &Bench) {
    assert_swapped(bench, &key("there"), None, &Bytes::from_static(b"first")).await;
    let version = read(bench, &key("there")).await.version;
    let missing = key("missing");
    assert_conflict(bench, &missing, Some(&version)).await;
    assert_eq!(bench.cells.read(&missing).await.expect("read"), None);
}

/// Fifty at once, several times.
pub async fn fifty_racing_creates_have_one_winner(bench: &Bench) {
    for round in 0..4 {
        let at = key(&format!("create-{round}"));
        let start = Arc::new(Barrier::new(RACERS));
        let racers = (0..RACERS).map(|racer| {
            let (cells, at, start) = (Arc::clone(&bench.cells), at.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                let bytes = Bytes::from(format!("racer {racer}"));
                start.wait().await;
                (cells.swap(&at, None, bytes.clone()).await, bytes)
            })
        });
        let mut winners = Vec::new();
        for raced in join_all(racers).await {
            let (swap, bytes) = raced.expect("a racer ran");
            match swap {
                Swap::Swapped => winners.push(bytes),
                Swap::Conflict => {}
                other => panic!("a racer got {other:?}"),
            }
        }
        assert_eq!(winners.len(), 1, "winners of round {round}");
        assert_eq!(read(bench, &at).await.bytes, winners[0]);
    }
}

/// Fifty add their line to one cell, each until it has succeeded.
pub async fn fifty_racing_swaps_lose_none(bench: &Bench) {
    let at = key("lines");
    let start = Arc::new(Barrier::new(RACERS));
    let racers = (0..RACERS).map(|racer| {
        let (cells, at, start) = (Arc::clone(&bench.cells), at.clone(), Arc::clone(&start));
        tokio::spawn(async move {
            start.wait().await;
            loop {
                let (mut bytes, version) = match cells.read(&at).await.expect("read") {
                    Some(cell) => (cell.bytes.to_vec(), Some(cell.version)),
                    None => (Vec::new(), None),
                };
                bytes.extend_from_slice(format!("racer {racer}\n").as_bytes());
                match cells.swap(&at, version.as_ref(), bytes.into()).await {
                    Swap::Swapped => return,
                    Swap::Conflict => tokio::task::yield_now().await,
                    other => panic!("a racer got {other:?}"),
                }
            }
        })
    });
    for raced in join_all(racers).await {
        raced.expect("a racer ran");
    }
    let bytes = read(bench, &at).await.bytes;
    let lines: Vec<_> = std::str::from_utf8(&bytes).expect("text").lines().collect();
    assert_eq!(lines.len(), RACERS, "each line once");
    assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), RACERS, "and none twice");
}

/// The probe finds nothing to blame.
pub async fn the_probe_finds_no_lie(bench: &Bench) {
    crate::register::probe::probe(Arc::clone(&bench.cells), 77).await.expect("no liar");
}

/// Not part of the suite: what a store that declares no conditional writes must do instead.
/// Nothing is written, and it says so.
pub async fn a_store_without_conditions_refuses_them(cells: &dyn CompareAndSwap) {
    let at = key("never");
    let version = Version { e_tag: Some("\"1\"".to_owned()), version: Some("1".to_owned()) };
    for expected in [None, Some(&version)] {
        let swap = cells.swap(&at, expected, Bytes::from_static(b"must not come")).await;
        assert!(matches!(swap, Swap::NotDone(_)), "{swap:?}");
        assert_eq!(cells.read(&at).await.expect("read"), None);
    }
}
