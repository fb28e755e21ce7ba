//! Objects in memory under the suite that every backend passes, with blobs that fit into one
//! request and with blobs that go in parts, and under faults.

mod faulty;

use std::sync::Arc;

use async_trait::async_trait;
use object_store::{ObjectStoreExt as _, memory::InMemory, path::Path};

use self::faulty::{Faulty, Habit};
use super::ObjectBlobs;
use crate::{
    BlobError, Blobs, ByteRange, Place,
    bucket::Bucket,
    conformance::blobs::{Bench, generation, sample},
    read_to_vec,
    transfer::CHUNK_BYTES,
    write,
};

struct Objects {
    blobs: ObjectBlobs,
    faulty: Arc<Faulty>,
}

impl Objects {
    fn new(part_bytes: usize, is_conditional: bool) -> Self {
        Self::with(Habit::None, part_bytes, is_conditional)
    }

    fn with(habit: Habit, part_bytes: usize, is_conditional: bool) -> Self {
        let faulty = Arc::new(Faulty::new(InMemory::new(), habit));
        let bucket = Bucket::over("memory://", Arc::clone(&faulty) as _, Path::from("some/prefix"));
        let bucket = Bucket { is_conditional, ..bucket };
        Self { blobs: ObjectBlobs::with_part_bytes(bucket, part_bytes), faulty }
    }

    fn place(bytes: &[u8]) -> Place {
        Place::new(palisade_core::Digest::of(bytes), generation(1))
    }
}

#[async_trait]
impl Bench for Objects {
    fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(self.blobs.clone())
    }

    async fn damage(&self, place: Place, bytes: Vec<u8>) {
        let path = self.blobs.shared.path(place);
        self.faulty.inner.put(&path, bytes.into()).await.expect("damaged");
    }

    async fn leftovers(&self) -> usize {
        self.faulty.settled_unfinished().await
    }
}

mod whole {
    use super::Objects;
    crate::blob_conformance!(std::future::ready(Objects::new(8 << 20, true)));
}

mod in_parts {
    use super::Objects;
    crate::blob_conformance!(std::future::ready(Objects::new(64 << 10, true)));
}

mod without_conditions {
    use super::Objects;
    crate::blob_conformance!(std::future::ready(Objects::new(200 << 10, false)));
}

#[tokio::test]
async fn a_lost_answer_is_settled_by_what_is_there() {
    for (habit, part_bytes) in [(Habit::LosePut, 8 << 20), (Habit::LoseComplete, 64 << 10)] {
        let bench = Objects::with(habit, part_bytes, true);
        let bytes = sample(2 * CHUNK_BYTES, 1);
        let place = Objects::place(&bytes);
        let written = write(&bench.blobs, place, u64::MAX, bytes.as_slice()).await;
        assert_eq!(written.expect("it is there"), bytes.len() as u64, "{habit:?}");
        let read = read_to_vec(&bench.blobs, place, ByteRange::FULL).await.expect("read");
        assert!(read == bytes);
        assert_eq!(bench.leftovers().await, 0, "{habit:?}");
    }
}

#[tokio::test]
async fn a_request_that_got_lost_is_an_error_and_leaves_nothing() {
    for (habit, part_bytes) in [
        (Habit::RefusePut, 8 << 20),
        (Habit::RefuseComplete, 64 << 10),
        (Habit::RefusePart, 64 << 10),
    ] {
        let bench = Objects::with(habit, part_bytes, true);
        let bytes = sample(2 * CHUNK_BYTES, 1);
        let place = Objects::place(&bytes);
        let written = write(&bench.blobs, place, u64::MAX, bytes.as_slice()).await;
        assert!(matches!(written, Err(BlobError::Store { .. })), "{habit:?}: {written:?}");
        assert_eq!(bench.blobs.size(place).await.expect("a size"), None, "{habit:?}");
        assert_eq!(bench.leftovers().await, 0, "{habit:?}");
    }
}

#[tokio::test]
async fn an_upload_holds_three_parts_in_memory_at_most() {
    let bench = Objects::with(Habit::HoldParts, 64 << 10, true);
    let bytes = sample(32 * (64 << 10), 1);
    let place = Objects::place(&bytes);
    let blobs = bench.blobs.clone();
    let size = bytes.len() as u64;
    let writing =
        tokio::spawn(async move { write(&blobs, place, u64::MAX, bytes.as_slice()).await });
    for _ in 0..32 {
        assert!(bench.faulty.one_part_waits().await <= 2, "no more are on their way at a time");
        bench.faulty.let_one_part_go();
    }
    assert_eq!(writing.await.expect("it ran").expect("written"), size);
}

#[test]
fn parts_grow_so_that_ten_thousand_of_them_hold_a_long_film() {
    use super::parts::{PART_BYTES, bytes_of, size_max};
    assert_eq!(bytes_of(PART_BYTES, 0), 8 << 20);
    assert_eq!(bytes_of(PART_BYTES, 999), 8 << 20);
    assert_eq!(bytes_of(PART_BYTES, 1_000), 32 << 20);
    let all: u64 = (0..10_000).map(|index| bytes_of(PART_BYTES, index) as u64).sum();
    assert_eq!(size_max(PART_BYTES), all);
    assert!(all > 280 << 30);
}

#[tokio::test]
async fn blobs_and_registers_of_one_bucket_do_not_meet() {
    use crate::register::CompareAndSwap as _;
    let bench = Objects::new(8 << 20, true);
    let bytes = sample(10, 1);
    write(&bench.blobs, Objects::place(&bytes), 100, bytes.as_slice()).await.expect("written");
    let cells = bench.blobs.shared.bucket.cells();
    cells.swap(&crate::conformance::cells::key("mine"), None, "a fence".into()).await;
    let listed = bench.blobs.list().await.expect("a list");
    let listed: Vec<_> = futures_util::TryStreamExt::try_collect(listed).await.expect("all of it");
    assert_eq!(listed.len(), 1, "a register is no blob: {listed:?}");
}
