//! The folder under the suite, with crashes between every two steps, and with real processes that
//! are killed.

mod killed;

use std::{fs, sync::Arc};

use bytes::Bytes;
use palisade_core::{LeaseId, Number};

use super::{DirectoryCells, Hold, files::Files, try_lock};
use crate::{
    conformance::cells::{Bench, key},
    register::{CompareAndSwap, Key, Op, Pace, Register, Stamp, Swap, Version},
};

async fn opened(folder: &tempfile::TempDir) -> DirectoryCells {
    // Deeper than what exists, as a fresh data directory is.
    let root = folder.path().join("data/registers");
    DirectoryCells::open(root, DirectoryCells::LOCK_WAIT_MS_DEFAULT).await.expect("opened")
}

async fn bench() -> Bench {
    let folder = tempfile::tempdir().expect("a folder");
    Bench { cells: Arc::new(opened(&folder).await), keep: Box::new(folder) }
}

crate::register_conformance!(bench());

/// Dies after so many steps of a swap on `expected`; the kernel releases the lock.
fn swap_until(survived: usize, files: &Files, expected: Option<&Version>, bytes: &Bytes) {
    let steps: [&dyn Fn(); 5] = [
        &|| assert!(files.check(expected, bytes).expect("read").is_some()),
        &|| fs::write(files.next(), b"palisade-ce").expect("a part written"),
        &|| files.prepare(2, bytes).expect("prepared"),
        &|| files.rename().expect("renamed"),
        &|| files.sync_folder().expect("synced"),
    ];
    let lock = try_lock(&files.lock(), Hold::Alone).expect("lockable").expect("free");
    for step in &steps[..survived] {
        step();
    }
    drop(lock);
}

#[tokio::test]
async fn after_a_crash_between_any_two_steps_the_cell_is_the_old_or_the_new_one() {
    for survived in 0..=5 {
        let folder = tempfile::tempdir().expect("a folder");
        let cells = opened(&folder).await;
        let at = key("cell");
        let swap = cells.swap(&at, None, "old".into()).await;
        assert!(matches!(swap, Swap::Swapped), "{swap:?}");
        let old = cells.read(&at).await.expect("read").expect("there");
        swap_until(survived, &cells.files(&at), Some(&old.version), &"new".into());

        let found = cells.read(&at).await.expect("read").expect("there");
        assert_eq!(found.bytes, if survived < 4 { "old" } else { "new" }, "{survived} steps");
        assert_eq!(found.version == old.version, survived < 4, "{survived} steps");
        let swap = cells.swap(&at, Some(&found.version), "newer".into()).await;
        assert!(matches!(swap, Swap::Swapped), "after {survived} steps: {swap:?}");
        let after = cells.read(&at).await.expect("read").expect("there");
        assert_eq!(after.bytes, "newer", "after {survived} steps");
        assert!(!cells.files(&at).next().exists(), "nothing is left after {survived} steps");
    }
}

/// A cell whose lock somebody else has, and never lets go.
async fn held_up(at: &Key) -> (tempfile::TempDir, DirectoryCells, fs::File) {
    let folder = tempfile::tempdir().expect("a folder");
    let cells = DirectoryCells::open(folder.path(), 0).await.expect("opened");
    let swap = cells.swap(at, None, "first".into()).await;
    assert!(matches!(swap, Swap::Swapped), "{swap:?}");
    let holder = try_lock(&cells.files(at).lock(), Hold::Alone).expect("lockable").expect("free");
    (folder, cells, holder)
}

#[tokio::test]
async fn behind_a_stopped_holder_others_give_up_with_nothing_done() {
    let at = key("held");
    let (_folder, cells, holder) = held_up(&at).await;
    let refused = cells.read(&at).await.expect_err("held");
    assert!(refused.to_string().ends_with("could not lock"), "{refused}");
    let swap = cells.swap(&at, None, "x".into()).await;
    assert!(matches!(swap, Swap::NotDone(_)), "{swap:?}");
    let swap = cells.swap(&key("another"), None, "x".into()).await;
    assert!(matches!(swap, Swap::Swapped), "other cells go on: {swap:?}");
    drop(holder);
    assert_eq!(cells.read(&at).await.expect("read").expect("there").bytes, "first");
}

#[tokio::test]
async fn asking_for_what_is_not_there_leaves_no_file_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let cells = DirectoryCells::open(folder.path(), 0).await.expect("opened");
    assert_eq!(cells.read(&key("nobody/wrote/this")).await.expect("read"), None);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[tokio::test]
async fn a_cell_is_had_as_soon_as_its_holder_lets_go() {
    let at = key("held");
    let (folder, _, holder) = held_up(&at).await;
    let cells = DirectoryCells::open(folder.path(), 60_000).await.expect("opened");
    let reader = tokio::spawn(async move { cells.read(&at).await });
    tokio::task::yield_now().await;
    drop(holder);
    let cell = reader.await.expect("ran").expect("read").expect("there");
    assert_eq!(cell.bytes, "first");
}

#[tokio::test]
async fn a_damaged_cell_is_an_error_for_reads_and_swaps() {
    let folder = tempfile::tempdir().expect("a folder");
    let cells = opened(&folder).await;
    let at = key("damaged");
    cells.swap(&at, None, "good bytes".into()).await;
    let version = cells.read(&at).await.expect("read").expect("there").version;
    let whole = fs::read(cells.files(&at).cell()).expect("a file");
    let mut flipped = whole.clone();
    *flipped.last_mut().expect("bytes") ^= 1;
    for damaged in [flipped, whole[..whole.len() - 1].to_vec(), Vec::new()] {
        fs::write(cells.files(&at).cell(), &damaged).expect("damaged");
        cells.read(&at).await.expect_err("damaged");
        for expected in [Some(&version), None] {
            let swap = cells.swap(&at, expected, "over it".into()).await;
            assert!(matches!(swap, Swap::NotDone(_)), "{swap:?}");
        }
        assert_eq!(fs::read(cells.files(&at).cell()).expect("a file"), damaged, "left as it is");
    }
}

#[tokio::test]
async fn a_folder_that_is_gone_is_not_taken_for_a_cell_that_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let cells = opened(&folder).await;
    fs::remove_dir_all(folder.path().join("data")).expect("removed");
    cells.read(&key("x")).await.expect_err("gone");
    let swap = cells.swap(&key("x"), None, "x".into()).await;
    assert!(matches!(swap, Swap::NotDone(_)), "{swap:?}");
}

/// Run by hand: `cargo nextest run -p palisade-artefacts --run-ignored only --no-capture`.
#[tokio::test]
#[ignore = "measures; says nothing about right or wrong"]
#[expect(clippy::disallowed_methods, reason = "a measurement, on a machine that is awake")]
async fn measure_puts() {
    let folder = tempfile::tempdir().expect("a folder");
    let register = Register::new(Arc::new(opened(&folder).await), Pace::default());
    let begun = std::time::Instant::now();
    for op in 1..=200 {
        let op = Op::new(op).expect("an op");
        let stamp = Stamp::grant(Number::MAX, LeaseId(1), op).expect("a stamp");
        let pointer = "a/pointer".parse().expect("a pointer");
        register.put(&key("x"), stamp, pointer, 1).await.expect("written");
    }
    println!("a put takes {:.2} ms", begun.elapsed().as_secs_f64() * 1e3 / 200.0);
}
