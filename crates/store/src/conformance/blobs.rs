//! Blobs: rows with generations, pins.

use palisade_core::{
    Digest, Number, Refusal,
    blob::{Blob, BlobState},
};

use crate::{
    Store, StoreExt,
    command::{BeginBlob, FinishBlob, Pin},
    query::{Query, View},
};

use super::bench::{BEGINNING, Bench, never_granted};

const LONG: Pin = Pin::Until(BEGINNING.plus_ms(3_600_000));

async fn shown<S: Store>(bench: &Bench<S>, digest: Digest) -> Option<Blob> {
    match bench.store.query(Query::Blob(digest)).await {
        Ok(View::Blob(blob)) => blob,
        other => panic!("a blob is asked for, but: {other:?}"),
    }
}

/// A blob is uploading until its bytes are durable, then present.
pub async fn a_blob_is_present_once_its_upload_ended<S: Store>(bench: &Bench<S>) {
    let digest = Digest::of(b"bytes");
    assert_eq!(shown(bench, digest).await, None);
    let begun = bench.store.run(BeginBlob { digest, pin: LONG }).await.expect("answered");
    assert!(!begun.present);
    let generation = begun.generation;
    let uploading = Blob { digest, generation, state: BlobState::Uploading, size_bytes: None };
    assert_eq!(shown(bench, digest).await, Some(uploading));
    let finish = FinishBlob { digest, generation, size_bytes: 5 };
    let finished = bench.store.run(finish).await.expect("answered");
    assert!(finished.present);
    let present = Blob { state: BlobState::Present, size_bytes: Some(5), ..uploading };
    assert_eq!(shown(bench, digest).await, Some(present));
    // Told again it answers the same, and what is there keeps its length.
    assert_eq!(bench.store.run(finish).await, Ok(finished));
    let other = FinishBlob { size_bytes: 6, ..finish };
    assert_eq!(bench.store.run(other).await, Ok(finished));
    assert_eq!(shown(bench, digest).await, Some(present));
}

/// Whoever wants to bring what is there is told so; two that bring the same share its place.
pub async fn uploaders_of_the_same_bytes_share_a_place<S: Store>(bench: &Bench<S>) {
    let digest = Digest::of(b"bytes");
    let one = bench.store.run(BeginBlob { digest, pin: LONG }).await.expect("answered");
    let two = bench.store.run(BeginBlob { digest, pin: LONG }).await.expect("answered");
    assert_eq!(one, two);
    let finish = FinishBlob { digest, generation: one.generation, size_bytes: 5 };
    bench.store.run(finish).await.expect("answered");
    let three = bench.store.run(BeginBlob { digest, pin: LONG }).await.expect("answered");
    assert_eq!((three.generation, three.present), (one.generation, true));
    assert_eq!(three.size_bytes, Some(5));
}

/// An upload to another generation than the newest makes nothing present.
pub async fn an_upload_to_another_generation_starts_again<S: Store>(bench: &Bench<S>) {
    let digest = Digest::of(b"bytes");
    let begun = bench.store.run(BeginBlob { digest, pin: LONG }).await.expect("answered");
    for generation in [begun.generation.next(), Number::ZERO] {
        let finish = FinishBlob { digest, generation, size_bytes: 5 };
        let refusal = bench.refused(finish).await;
        assert_eq!(refusal, Refusal::StaleGeneration { digest, generation });
    }
    let nobody = Digest::of(b"never begun");
    let finish = FinishBlob { digest: nobody, generation: begun.generation, size_bytes: 5 };
    assert_eq!(bench.refused(finish).await.code(), "stale_generation");
    assert_eq!(shown(bench, digest).await.map(|blob| blob.state), Some(BlobState::Uploading));
}

/// An attempt pins while it is open; afterwards, and with a pair that is not its own, it does not.
pub async fn only_an_open_attempt_can_pin<S: Store>(bench: &Bench<S>) {
    bench.new_job().await;
    let grant = bench.grant("alice").await;
    let digest = Digest::of(b"bytes");
    let pin = Pin::Attempt(grant.job.id, grant.pair);
    bench.store.run(BeginBlob { digest, pin }).await.expect("an open attempt pins");
    let stranger = Pin::Attempt(grant.job.id, never_granted());
    let refusal = bench.refused(BeginBlob { digest, pin: stranger }).await;
    assert_eq!(refusal.code(), "unknown_token");
    bench.store.run(Bench::<S>::release_of(&grant)).await.expect("a release is taken");
    let refusal = bench.refused(BeginBlob { digest, pin }).await;
    assert_eq!(refusal.code(), "stale_token");
}
