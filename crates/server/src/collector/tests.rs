//! The collector, paused, killed and doubled at every step.

mod stage;

use std::sync::Arc;

use palisade_artefacts::{ByteRange, Place, read_to_vec, write};
use palisade_core::{Digest, blob::BlobState};

use self::stage::{Break, Stage, TOMBSTONE_MS};

#[tokio::test]
async fn an_orphan_is_condemned_cleared_and_at_last_forgotten() {
    let stage = Stage::new();
    let orphan = stage.bring(b"orphan", 1_000).await;
    let kept = stage.bring(b"kept", 1_000_000_000_000).await;
    stage.pass(1_000);
    let mut collector = stage.collector();
    let tally = collector.round().await.expect("a round");
    assert_eq!((tally.condemned, tally.cleared), (0, 0), "it is only noted");
    assert!(stage.is_there(orphan).await);
    stage.pass_grace();
    let tally = collector.round().await.expect("a round");
    assert_eq!((tally.condemned, tally.cleared, tally.forgotten), (1, 1, 0));
    assert!(!stage.is_there(orphan).await);
    assert_eq!(stage.state(orphan.digest).await, Some(BlobState::Condemned), "a tombstone");
    stage.pass(TOMBSTONE_MS);
    assert_eq!(collector.round().await.expect("a round").forgotten, 1);
    assert_eq!(stage.state(orphan.digest).await, None);
    assert!(stage.is_there(kept).await, "what is kept is untouched");
    assert_eq!(stage.state(kept.digest).await, Some(BlobState::Present));
}

/// It has decided, and stands before its delete, when a writer brings the same bytes and commits.
#[tokio::test]
async fn a_collector_that_paused_before_its_delete_does_not_touch_what_was_brought_meanwhile() {
    let stage = Stage::new();
    let orphan = stage.bring(b"the same bytes", 1_000).await;
    stage.pass(1_000);
    let mut collector = stage.collector();
    collector.round().await.expect("it is noted");
    stage.pass_grace();
    let gate = stage.blobs.pause_before_deletes();
    let paused = tokio::spawn(async move { collector.round().await });
    gate.reached().await;
    assert_eq!(stage.state(orphan.digest).await, Some(BlobState::Condemned));

    let reused = stage.bring(b"the same bytes", 1_000_000_000).await;
    assert!(reused.generation > orphan.generation, "a place of its own");
    gate.open();
    paused.await.expect("it ran").expect("a round");

    assert!(!stage.is_there(orphan).await);
    let read = read_to_vec(stage.blobs.as_ref(), reused, ByteRange::FULL).await;
    assert_eq!(read.expect("it is there"), b"the same bytes");
    assert_eq!(stage.state(reused.digest).await, Some(BlobState::Present));
}

/// A writer is told its place and pauses; the place is condemned and cleared; the bytes arrive.
#[tokio::test]
async fn a_late_upload_to_a_condemned_place_is_never_a_blob_and_is_cleared_in_the_end() {
    let stage = Stage::new();
    let late = stage.begin(b"late", 1_000).await;
    stage.pass(1_000);
    let mut collector = stage.collector();
    collector.round().await.expect("it is noted");
    stage.pass_grace();
    assert_eq!(collector.round().await.expect("a round").cleared, 1);

    write(stage.blobs.as_ref(), late, 100, &b"late"[..]).await.expect("its bytes arrive");
    assert_eq!(stage.finish(late, 4).await.expect_err("refused").code(), "stale_generation");
    assert_eq!(stage.state(late.digest).await, Some(BlobState::Condemned));
    let again = stage.bring(b"late", 1_000_000_000_000).await;

    stage.pass(TOMBSTONE_MS);
    assert_eq!(collector.round().await.expect("a round").forgotten, 1);
    assert!(!stage.is_there(late).await, "the garbage is gone");
    assert!(stage.is_there(again).await);
}

/// The process dies at its n-th call, before or after that is done; another one goes on.
#[tokio::test]
async fn a_collector_that_dies_at_any_step_is_gone_on_with_by_another() {
    let mut deaths = 0;
    for when in [Break::BeforeIt, Break::AfterIt] {
        for calls in 0..40 {
            let stage = Stage::new();
            let kept = stage.bring(b"kept", 1_000_000_000_000).await;
            let mut orphans = Vec::new();
            for number in 0..3 {
                let bytes = format!("orphan {number}");
                orphans.push(stage.bring(bytes.as_bytes(), 1_000).await);
            }
            stage.pass(1_000);
            stage.dies_after(calls, when);
            let mut dying = stage.collector();
            for pause_ms in [stage::GRACE_MS, TOMBSTONE_MS, 0] {
                deaths += usize::from(dying.round().await.is_err());
                stage.pass(pause_ms);
            }
            stage.lives_again();
            let mut other = stage.collector();
            for pause_ms in [stage::GRACE_MS, TOMBSTONE_MS, 0] {
                other.round().await.expect("a round of the other");
                stage.pass(pause_ms);
            }
            for orphan in orphans {
                assert!(!stage.is_there(orphan).await, "call {calls}, {when:?}");
                assert_eq!(stage.state(orphan.digest).await, None, "call {calls}, {when:?}");
            }
            assert!(stage.is_there(kept).await, "call {calls}, {when:?}");
            assert_eq!(stage.state(kept.digest).await, Some(BlobState::Present));
        }
    }
    assert!(deaths > 20, "it died {deaths} times only");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_collectors_and_a_writer_that_reuses_lose_nothing() {
    let stage = Arc::new(Stage::new());
    let content = |number: usize| format!("blob {number}").into_bytes();
    for number in 0..40 {
        stage.bring(&content(number), 1).await;
    }
    stage.pass(1);
    let collectors = (0..2).map(|_| {
        let stage = Arc::clone(&stage);
        tokio::spawn(async move {
            let mut collector = stage.collector();
            for _ in 0..60 {
                collector.round().await.expect("a round");
                stage.pass(stage::GRACE_MS / 3);
                tokio::task::yield_now().await;
            }
        })
    });
    let collectors: Vec<_> = collectors.collect();
    let mut kept = Vec::new();
    for number in 0..20 {
        kept.push((number, stage.bring(&content(number), 1_000_000_000_000).await));
        tokio::task::yield_now().await;
    }
    for collector in collectors {
        collector.await.expect("it ran");
    }
    for (number, place) in kept {
        assert_eq!(stage.state(place.digest).await, Some(BlobState::Present), "blob {number}");
        let read = read_to_vec(stage.blobs.as_ref(), place, ByteRange::FULL).await;
        assert_eq!(read.expect("its bytes are there"), content(number));
    }
    for number in 20..40 {
        let digest = Digest::of(&content(number));
        assert_ne!(stage.state(digest).await, Some(BlobState::Present), "blob {number}");
    }
    let places: Vec<Place> = stage.places().await;
    assert_eq!(places.len(), 20, "and nothing else takes up room: {places:?}");
}
