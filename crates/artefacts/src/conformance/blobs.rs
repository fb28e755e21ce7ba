//! What every [`Blobs`] must do.

use std::{io, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use palisade_core::{Digest, Number};

pub use super::blobs_races::{
    fifty_writers_of_one_place_all_succeed, nothing_is_seen_of_a_blob_before_it_is_placed,
    racing_readers_see_nothing_or_the_whole,
};
use crate::{
    BlobError, Blobs, ByteRange, Place, read_to_vec, transfer::CHUNK_BYTES, write, write_unnamed,
};

/// A backend under test, empty at first.
#[async_trait]
pub trait Bench: Send + Sync {
    /// The backend.
    fn blobs(&self) -> Arc<dyn Blobs>;
    /// Replaces what is stored at a place, behind the backend's back.
    async fn damage(&self, place: Place, bytes: Vec<u8>);
    /// How many unfinished uploads still take up space.
    async fn leftovers(&self) -> usize;
}

/// Bytes that differ from place to place, and from seed to seed.
pub fn sample(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        state.to_be_bytes()[0]
    };
    (0..size).map(|_| next()).collect()
}

/// A generation.
pub fn generation(value: u64) -> Number {
    Number::new(value).expect("a test's generation is small")
}

pub(super) async fn stored(bench: &dyn Bench, bytes: &[u8], number: u64) -> Place {
    let place = Place::new(Digest::of(bytes), generation(number));
    let size = write(bench.blobs().as_ref(), place, u64::MAX, bytes).await.expect("written");
    assert_eq!(size, bytes.len() as u64);
    place
}

async fn assert_empty(bench: &dyn Bench) {
    let blobs = bench.blobs();
    let listed: Vec<_> =
        blobs.list().await.expect("a list").try_collect().await.expect("a whole list");
    assert_eq!(listed, [], "nothing may be at any place");
    assert_eq!(bench.leftovers().await, 0, "nothing may be left of the upload");
}

/// Sizes around the chunk's, and none at all.
pub async fn a_blob_is_read_back_as_it_was_written(bench: &dyn Bench) {
    let sizes = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 7];
    for (number, size) in (1..).zip(sizes) {
        let bytes = sample(size, number);
        let place = stored(bench, &bytes, number).await;
        let blobs = bench.blobs();
        assert_eq!(blobs.size(place).await.expect("a size"), Some(size as u64));
        let reader = blobs.open(place, ByteRange::FULL).await.expect("opened");
        assert_eq!((reader.size, reader.range), (size as u64, 0..size as u64));
        let chunks: Vec<Bytes> = reader.chunks.try_collect().await.expect("read");
        assert!(chunks.iter().all(|chunk| chunk.len() <= CHUNK_BYTES), "chunks are bounded");
        assert!(chunks.concat() == bytes, "the bytes of size {size} came back changed");
        if let Some(path) = blobs.local_path(place) {
            assert!(std::fs::read(path).expect("a local file") == bytes, "the file differs");
        }
        assert_eq!(bench.leftovers().await, 0);
    }
}

/// Within a chunk, across chunks, to the end, beyond the end.
pub async fn a_range_brings_just_its_bytes(bench: &dyn Bench) {
    let (size, chunk) = (2 * CHUNK_BYTES + 100, CHUNK_BYTES);
    let bytes = sample(size, 1);
    let place = stored(bench, &bytes, 1).await;
    for (from, to) in [(0, 1), (5, 17), (chunk - 3, chunk + 3), (1, size), (0, size - 1), (0, size)]
    {
        let asked = ByteRange::new(from as u64, to as u64);
        let got = read_to_vec(bench.blobs().as_ref(), place, asked).await.expect("a range");
        assert!(got == bytes[from..to], "the range {asked:?} brought other bytes");
    }
    let end = size as u64;
    let reader = bench.blobs().open(place, ByteRange::new(end - 4, end + 4)).await.expect("cut");
    assert_eq!(reader.range, end - 4..end, "an end beyond the end is cut to it");
    let tail = read_to_vec(bench.blobs().as_ref(), place, ByteRange::from(end - 4)).await;
    assert_eq!(tail.expect("a tail"), bytes[size - 4..]);
}

/// Starts at or after the end, and empty ranges.
pub async fn a_range_that_names_no_byte_is_refused(bench: &dyn Bench) {
    let place = stored(bench, b"twelve bytes", 1).await;
    for range in [ByteRange::from(12), ByteRange::new(40, 50), ByteRange::new(3, 3)] {
        let refused = bench.blobs().open(place, range).await.expect_err("no byte is in it");
        assert!(
            matches!(refused, BlobError::OutOfRange { size: 12, .. }),
            "{range:?} got {refused:?}"
        );
    }
}

/// Hashed on arrival, placed when the generation is known.
pub async fn an_upload_of_unknown_digest_is_named_by_its_bytes(bench: &dyn Bench) {
    let bytes = sample(CHUNK_BYTES + 5, 3);
    let blobs = bench.blobs();
    let staged = write_unnamed(blobs.as_ref(), u64::MAX, bytes.as_slice()).await.expect("staged");
    assert_eq!((staged.digest(), staged.size()), (Digest::of(&bytes), bytes.len() as u64));
    let place = staged.place(generation(7)).await.expect("placed");
    assert_eq!(place, Place::new(Digest::of(&bytes), generation(7)));
    let read = read_to_vec(blobs.as_ref(), place, ByteRange::FULL).await.expect("read");
    assert!(read == bytes);
    assert_eq!(bench.leftovers().await, 0);
}

/// A digest that does not fit is named, with the one that came.
pub async fn other_bytes_than_announced_leave_nothing(bench: &dyn Bench) {
    let place = Place::new(Digest::of(b"announced"), generation(1));
    let refused = write(bench.blobs().as_ref(), place, u64::MAX, &b"something else"[..])
        .await
        .expect_err("another digest");
    let BlobError::Mismatch { expected, got } = refused else { panic!("{refused:?}") };
    assert_eq!((expected, got), (place.digest, Digest::of(b"something else")));
    assert_empty(bench).await;
}

/// The limit itself is allowed.
pub async fn a_byte_too_many_leaves_nothing(bench: &dyn Bench) {
    for size in [10, CHUNK_BYTES * 2] {
        let bytes = sample(size, 1);
        let place = Place::new(Digest::of(&bytes), generation(1));
        let blobs = bench.blobs();
        let size_max = size as u64 - 1;
        let refused = write(blobs.as_ref(), place, size_max, bytes.as_slice()).await;
        let refused = refused.expect_err("a byte too many");
        assert!(matches!(refused, BlobError::TooLarge { size_max: limit } if limit == size_max));
        assert_empty(bench).await;
        write(blobs.as_ref(), place, size as u64, bytes.as_slice()).await.expect("just fits");
        blobs.delete(place).await.expect("deleted");
    }
}

/// Dropped while it is written, and when it is staged.
pub async fn a_dropped_upload_leaves_nothing(bench: &dyn Bench) {
    let blobs = bench.blobs();
    let mut upload = blobs.begin(None, u64::MAX).await.expect("begun");
    upload.write(Bytes::from(sample(CHUNK_BYTES + 1, 1))).await.expect("written");
    drop(upload);
    assert_empty(bench).await;
    let staged = write_unnamed(blobs.as_ref(), u64::MAX, &b"staged"[..]).await.expect("staged");
    drop(staged);
    assert_empty(bench).await;
}

/// A client that hangs up in the middle.
pub async fn a_source_that_breaks_off_leaves_nothing(bench: &dyn Bench) {
    let bytes = sample(2 * CHUNK_BYTES, 1);
    let place = Place::new(Digest::of(&bytes), generation(1));
    let source = tokio::io::AsyncReadExt::chain(&bytes[..CHUNK_BYTES + 9], BrokenSource);
    let refused = write(bench.blobs().as_ref(), place, u64::MAX, source).await;
    assert!(matches!(refused, Err(BlobError::Source(_))), "{refused:?}");
    assert_empty(bench).await;
}

struct BrokenSource;

impl tokio::io::AsyncRead for BrokenSource {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
        _buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

/// The collector deletes one generation; the one that a writer brought since stays.
pub async fn generations_of_one_digest_are_deleted_apart(bench: &dyn Bench) {
    let bytes = sample(1000, 1);
    let (old, new) = (stored(bench, &bytes, 4).await, stored(bench, &bytes, 5).await);
    let blobs = bench.blobs();
    blobs.delete(old).await.expect("deleted");
    assert_eq!(blobs.size(old).await.expect("a size"), None);
    blobs.delete(old).await.expect("deleting again is success");
    assert!(read_to_vec(blobs.as_ref(), new, ByteRange::FULL).await.expect("kept") == bytes);
}

/// An absence is none, or its own error, naming the place.
pub async fn what_is_not_there_is_said_to_be_not_there(bench: &dyn Bench) {
    let place = Place::new(Digest::of(b"nobody wrote this"), generation(1));
    let blobs = bench.blobs();
    assert_eq!(blobs.size(place).await.expect("a size"), None);
    let refused = blobs.open(place, ByteRange::FULL).await.expect_err("nothing is there");
    assert!(matches!(refused, BlobError::NotFound(named) if named == place), "{refused:?}");
    blobs.delete(place).await.expect("nothing to delete is success");
}

/// Every place once, with its size.
pub async fn all_that_is_stored_is_listed(bench: &dyn Bench) {
    let mut expected = Vec::new();
    for (size, number) in (1..=40).zip(1..) {
        expected.push((stored(bench, &sample(size, number), number).await, number));
    }
    let listed = bench.blobs().list().await.expect("a list");
    let listed: Vec<_> = listed.try_collect().await.expect("a whole list");
    let mut listed: Vec<_> = listed.iter().map(|found| (found.place, found.size)).collect();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

/// Whoever has all the bytes without an error has the blob.
pub async fn a_damaged_byte_is_an_error_instead_of_the_last_chunk(bench: &dyn Bench) {
    for (number, size) in [(1, 1), (2, CHUNK_BYTES), (3, 3 * CHUNK_BYTES)] {
        for at in [0, size / 2, size - 1] {
            let mut bytes = sample(size, number);
            let place = stored(bench, &bytes, number).await;
            bytes[at] ^= 1;
            bench.damage(place, bytes.clone()).await;
            let reader = bench.blobs().open(place, ByteRange::FULL).await.expect("opened");
            let chunks: Vec<_> = futures_util::StreamExt::collect(reader.chunks).await;
            let (last, before) = chunks.split_last().expect("at least the error");
            assert!(matches!(last, Err(BlobError::Corrupt { .. })), "{last:?}");
            let given: usize = before.iter().flatten().map(Bytes::len).sum();
            assert!(given < size, "all bytes of a damaged blob were given out");
            bench.blobs().delete(place).await.expect("deleted");
        }
    }
}

/// Cut to a part, and to nothing.
pub async fn a_blob_cut_short_is_an_error(bench: &dyn Bench) {
    let bytes = sample(CHUNK_BYTES + 10, 1);
    for kept in [0, 10, CHUNK_BYTES] {
        let place = stored(bench, &bytes, 1).await;
        bench.damage(place, bytes[..kept].to_vec()).await;
        let read = read_to_vec(bench.blobs().as_ref(), place, ByteRange::FULL).await;
        assert!(matches!(read, Err(BlobError::Corrupt { .. })), "{kept} bytes: {read:?}");
        bench.blobs().delete(place).await.expect("deleted");
    }
}

/// The same bytes again are success; a place of another size is reported, not mended in silence.
pub async fn a_placed_blob_is_not_replaced(bench: &dyn Bench) {
    let bytes = sample(500, 1);
    let place = stored(bench, &bytes, 1).await;
    assert_eq!(stored(bench, &bytes, 1).await, place);
    bench.damage(place, b"other".to_vec()).await;
    let again = write(bench.blobs().as_ref(), place, u64::MAX, bytes.as_slice()).await;
    assert!(matches!(again, Err(BlobError::Corrupt { .. })), "{again:?}");
    assert_eq!(bench.blobs().size(place).await.expect("a size"), Some(5));
    assert_eq!(bench.leftovers().await, 0);
}
