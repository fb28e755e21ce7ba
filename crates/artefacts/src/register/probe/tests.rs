//! Stores that lie, each in its own way, and the name that the probe has for it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;

use super::{Lie, ProbeError, probe};
use crate::{
    conformance::faulty::{Fault, FaultyCells},
    register::{Cell, CellError, CompareAndSwap, Key, MemoryCells, Swap, Version},
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Habit {
    /// Replaces what was only to be created.
    Replaces,
    /// Looks, and writes later: others get in between.
    LooksFirst,
    /// The same, but knows how to create.
    LooksFirstAtVersions,
    /// Takes any version for the right one.
    TakesAnyVersion,
    /// Takes a version for met by nothing.
    TakesMissing,
    /// Says that the version was another, and has written.
    WritesAndDenies,
    /// Has one version for everything, and takes it once after each read.
    OneVersion,
    /// Replaces what was only to be created, unless it was written just now.
    ReplacesLater,
    /// Takes an old version for the right one, unless there was a swap just now.
    TakesOldVersionLater,
    /// Keeps sending what it had first.
    SendsFirst,
}

/// A store with a habit.
#[derive(Debug)]
struct Liar {
    honest: MemoryCells,
    habit: Habit,
    /// Whether there was a read since the last swap that was done.
    is_quiet: AtomicBool,
}

impl Liar {
    fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::SeqCst)
    }

    async fn overwrite(&self, key: &Key, bytes: Bytes) -> Swap {
        loop {
            let version = self.honest.read(key).await.expect("memory").map(|cell| cell.version);
            let swap = self.honest.swap(key, version.as_ref(), bytes.clone()).await;
            if matches!(swap, Swap::Swapped) {
                return swap;
            }
        }
    }
}

#[async_trait]
impl CompareAndSwap for Liar {
    fn name(&self) -> String {
        format!("liar://{:?}", self.habit)
    }

    async fn read(&self, key: &Key) -> Result<Option<Cell>, CellError> {
        let mut cell = self.honest.read(key).await?;
        self.is_quiet.store(true, Ordering::SeqCst);
        if let (Habit::OneVersion, Some(cell)) = (self.habit, &mut cell) {
            cell.version = Version { e_tag: Some("1".to_owned()), version: None };
        }
        if let (Habit::SendsFirst, Some(cell)) = (self.habit, &mut cell)
            && cell.bytes.starts_with(b"swap")
        {
            cell.bytes = Bytes::from_static(b"as it was before");
        }
        Ok(cell)
    }

    async fn swap(&self, key: &Key, expected: Option<&Version>, bytes: Bytes) -> Swap {
        let is_there = self.honest.read(key).await.expect("memory").map(|cell| cell.version);
        let may = is_there.as_ref() == expected;
        let overwrites = match self.habit {
            Habit::Replaces => expected.is_none(),
            Habit::LooksFirst | Habit::LooksFirstAtVersions => {
                // On the test's one thread, all others look before this goes on.
                tokio::task::yield_now().await;
                may && (expected.is_some() || self.habit == Habit::LooksFirst)
            }
            Habit::TakesAnyVersion => expected.is_some() && is_there.is_some(),
            Habit::TakesMissing => expected.is_some() && is_there.is_none(),
            Habit::WritesAndDenies => expected.is_some() && !may,
            Habit::OneVersion => expected.is_some() && self.is_quiet(),
            Habit::ReplacesLater => expected.is_none() && self.is_quiet(),
            Habit::TakesOldVersionLater => {
                expected.is_some() && is_there.is_some() && self.is_quiet()
            }
            Habit::SendsFirst => false,
        };
        let swap = match (overwrites, self.habit) {
            (true, Habit::WritesAndDenies) => {
                self.overwrite(key, bytes).await;
                Swap::Conflict
            }
            (true, _) => self.overwrite(key, bytes).await,
            (false, _) => self.honest.swap(key, expected, bytes).await,
        };
        if matches!(swap, Swap::Swapped) {
            self.is_quiet.store(false, Ordering::SeqCst);
        }
        swap
    }
}

async fn lie_of(habit: Habit) -> Lie {
    let liar = Liar { honest: MemoryCells::new(), habit, is_quiet: AtomicBool::new(true) };
    match probe(Arc::new(liar), 1).await {
        Err(ProbeError::Liar { store, lie }) => {
            assert_eq!(store, format!("liar://{habit:?}"), "the liar is named");
            lie
        }
        other => panic!("{habit:?} passed as {other:?}"),
    }
}

#[tokio::test]
async fn a_store_that_lets_several_creators_win_is_refused() {
    for habit in [Habit::Replaces, Habit::LooksFirst] {
        let lie = lie_of(habit).await;
        assert!(matches!(lie, Lie::RacingCreates { winners: 2.., .. }), "{habit:?}: {lie:?}");
    }
}

#[tokio::test]
async fn a_store_that_lets_several_swaps_of_one_version_win_is_refused() {
    for habit in [Habit::LooksFirstAtVersions, Habit::TakesAnyVersion] {
        let lie = lie_of(habit).await;
        assert!(matches!(lie, Lie::RacingSwaps { winners: 2.., .. }), "{habit:?}: {lie:?}");
    }
}

#[tokio::test]
async fn a_store_that_takes_a_version_of_nothing_is_refused() {
    assert_eq!(lie_of(Habit::TakesMissing).await, Lie::SwapOfMissing);
}

#[tokio::test]
async fn a_store_that_writes_and_denies_it_is_refused() {
    assert_eq!(lie_of(Habit::WritesAndDenies).await, Lie::NotTheWinners);
}

#[tokio::test]
async fn a_store_that_has_one_version_for_everything_is_refused() {
    assert_eq!(lie_of(Habit::OneVersion).await, Lie::SameVersion);
}

#[tokio::test]
async fn a_store_that_is_honest_only_in_races_is_refused() {
    assert_eq!(lie_of(Habit::ReplacesLater).await, Lie::CreateOfExisting);
    assert_eq!(lie_of(Habit::TakesOldVersionLater).await, Lie::SwapOfOldVersion);
}

#[tokio::test]
async fn a_store_that_sends_what_it_had_before_is_refused() {
    assert_eq!(lie_of(Habit::SendsFirst).await, Lie::NotTheWinners);
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_not_called_a_liar() {
    for fault in [Fault::LoseReply, Fault::LoseRequest, Fault::NotDone] {
        let cells = FaultyCells::new(Arc::new(MemoryCells::new()), [fault.clone()]);
        let result = probe(cells, 1).await;
        assert!(matches!(result, Err(ProbeError::Inconclusive { .. })), "{fault:?}: {result:?}");
    }
}

#[tokio::test]
async fn two_probes_of_one_store_do_not_disturb_each_other() {
    let cells: Arc<dyn CompareAndSwap> = Arc::new(MemoryCells::new());
    let probes = (1..=4).map(|nonce| probe(Arc::clone(&cells), nonce));
    for probed in futures_util::future::join_all(probes).await {
        probed.expect("no liar");
    }
}
