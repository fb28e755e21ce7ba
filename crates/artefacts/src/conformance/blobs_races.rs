//! The cases of the blobs' suite in which several do something at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use futures_util::future::join_all;
use palisade_core::Digest;
use tokio::sync::Barrier;

use super::blobs::{Bench, generation, sample};
use crate::{BlobError, ByteRange, Place, read_to_vec, transfer::CHUNK_BYTES, write};

const WRITERS: usize = 50;

/// All at once, one generation, the same bytes.
pub async fn fifty_writers_of_one_place_all_succeed(bench: &dyn Bench) {
    let bytes = Bytes::from(sample(CHUNK_BYTES + 77, 1));
    let place = Place::new(Digest::of(&bytes), generation(1));
    let start = Arc::new(Barrier::new(WRITERS));
    let writers = (0..WRITERS).map(|_| {
        let (blobs, bytes, start) = (bench.blobs(), bytes.clone(), Arc::clone(&start));
        tokio::spawn(async move {
            start.wait().await;
            write(blobs.as_ref(), place, u64::MAX, bytes.as_ref()).await
        })
    });
    for written in join_all(writers).await {
        let size = written.expect("a writer ran").expect("a writer succeeded");
        assert_eq!(size, bytes.len() as u64);
    }
    let read = read_to_vec(bench.blobs().as_ref(), place, ByteRange::FULL).await.expect("read");
    assert!(read == bytes);
    assert_eq!(bench.leftovers().await, 0);
}

/// After each step of an upload: nothing, until the last.
pub async fn nothing_is_seen_of_a_blob_before_it_is_placed(bench: &dyn Bench) {
    let bytes = Bytes::from(sample(3 * CHUNK_BYTES, 1));
    let place = Place::new(Digest::of(&bytes), generation(1));
    let blobs = bench.blobs();
    let assert_absent = async || {
        assert_eq!(blobs.size(place).await.expect("a size"), None);
        let opened = blobs.open(place, ByteRange::FULL).await;
        assert!(matches!(opened, Err(BlobError::NotFound(_))), "{opened:?}");
    };
    let mut upload = blobs.begin(Some(place), u64::MAX).await.expect("begun");
    assert_absent().await;
    for piece in 0..3 {
        let piece = bytes.slice(piece * CHUNK_BYTES..(piece + 1) * CHUNK_BYTES);
        upload.write(piece).await.expect("written");
        assert_absent().await;
    }
    let staged = upload.finish().await.expect("finished");
    assert_absent().await;
    staged.place(place.generation).await.expect("placed");
    let read = read_to_vec(blobs.as_ref(), place, ByteRange::FULL).await.expect("read");
    assert!(read == bytes);
}

/// Readers that ask all the time while writers write.
pub async fn racing_readers_see_nothing_or_the_whole(bench: &dyn Bench) {
    let bytes = Bytes::from(sample(2 * CHUNK_BYTES + 1, 1));
    let digest = Digest::of(&bytes);
    for number in 1..=8 {
        let place = Place::new(digest, generation(number));
        let written = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (blobs, bytes) = (bench.blobs(), bytes.clone());
                let written = Arc::clone(&written);
                tokio::spawn(async move {
                    loop {
                        let was_written = written.load(Ordering::SeqCst);
                        match read_to_vec(blobs.as_ref(), place, ByteRange::FULL).await {
                            Ok(read) => assert!(read == bytes, "a reader saw other bytes"),
                            Err(BlobError::NotFound(_)) if !was_written => {}
                            Err(error) => panic!("a reader got {error:?}"),
                        }
                        if was_written {
                            return;
                        }
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        let blobs = bench.blobs();
        write(blobs.as_ref(), place, u64::MAX, bytes.as_ref()).await.expect("written");
        written.store(true, Ordering::SeqCst);
        for reader in readers {
            reader.await.expect("a reader ran");
        }
    }
}
