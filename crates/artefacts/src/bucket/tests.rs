//! Real servers on loopback under the suites that every backend passes, and one that lies.

mod azurite;
mod liar;
mod moto;
mod refusals;
mod servers;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use object_store::ObjectStoreExt as _;
use palisade_core::Timestamp;

use super::Bucket;
use crate::{
    Blobs, ByteRange, ObjectBlobs, Place, Shown,
    conformance::{
        blobs::{Bench, generation, sample},
        cells,
    },
    read_to_vec, write,
};

/// A prefix of its own in a bucket of a server.
struct OfServer {
    blobs: ObjectBlobs,
    bucket: Bucket,
}

/// Makes prefixes different within a test.
static PREFIXES: AtomicU64 = AtomicU64::new(0);

fn fresh_prefix() -> String {
    format!("some/prefix-{}", PREFIXES.fetch_add(1, Ordering::Relaxed))
}

impl OfServer {
    fn new(bucket: Bucket) -> Self {
        Self { blobs: ObjectBlobs::new(bucket.clone()), bucket }
    }

    fn cells(self) -> cells::Bench {
        cells::Bench { cells: Arc::new(self.bucket.cells()), keep: Box::new(()) }
    }

    fn path(&self, place: Place) -> object_store::path::Path {
        let blobs = self.bucket.prefix.clone().join("blobs");
        blobs.join(place.digest.to_string()).join(place.generation.to_string())
    }

    /// Unfinished uploads, once those that are being aborted are.
    async fn unfinished(&self) -> usize {
        let Some(uploads) = &self.bucket.uploads else { return 0 };
        let prefix = self.bucket.prefix.clone().join("blobs");
        let mut count = 0;
        for _ in 0..200 {
            count = uploads.list(&prefix).await.expect("a list").len();
            if count == 0 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        count
    }
}

#[async_trait]
impl Bench for OfServer {
    fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(self.blobs.clone())
    }

    async fn damage(&self, place: Place, bytes: Vec<u8>) {
        self.bucket.store.put(&self.path(place), bytes.into()).await.expect("damaged");
    }

    async fn leftovers(&self) -> usize {
        self.unfinished().await
    }
}

/// A blob of several parts goes up and comes down, whole and in part; one that is dropped in the
/// middle, or turns out to be another, leaves nothing.
async fn large_blobs_go_in_parts(bench: &OfServer) {
    let bytes = sample((20 << 20) + 7, 1);
    let place = Place::new(palisade_core::Digest::of(&bytes), generation(1));
    let size = write(&bench.blobs, place, u64::MAX, bytes.as_slice()).await.expect("written");
    assert_eq!(size, bytes.len() as u64);
    let read = read_to_vec(&bench.blobs, place, ByteRange::FULL).await.expect("read");
    assert!(read == bytes, "what came back is another blob");
    let across = ByteRange::new((8 << 20) - 5, (8 << 20) + 5);
    let part = read_to_vec(&bench.blobs, place, across).await.expect("read");
    assert_eq!(part, bytes[(8 << 20) - 5..(8 << 20) + 5]);
    // A second writer of the same place finds it there and takes its parts back.
    write(&bench.blobs, place, u64::MAX, bytes.as_slice()).await.expect("there already");
    assert_eq!(bench.unfinished().await, 0);

    let other = Place::new(palisade_core::Digest::of(b"announced"), generation(2));
    let refused = write(&bench.blobs, other, u64::MAX, bytes.as_slice()).await;
    assert!(matches!(refused, Err(crate::BlobError::Mismatch { .. })), "{refused:?}");
    let mut upload = bench.blobs.begin(Some(other), u64::MAX).await.expect("begun");
    upload.write(bytes.clone().into()).await.expect("written");
    drop(upload);
    assert_eq!(bench.unfinished().await, 0, "nothing is left of what was dropped");
    assert_eq!(bench.blobs.size(other).await.expect("a size"), None);

    let staged = crate::write_unnamed(&bench.blobs, u64::MAX, bytes.as_slice()).await;
    let staged = staged.expect("kept in a file without a name");
    let place = staged.place(generation(3)).await.expect("placed");
    let read = read_to_vec(&bench.blobs, place, ByteRange::FULL).await.expect("read");
    assert!(read == bytes);
}

/// An address that was signed brings the bytes to who has no credentials, ranges too; after its
/// time, or changed, it brings nothing.
async fn signed_addresses_bring_the_bytes(bench: &OfServer, shows_types: bool) {
    let bytes = sample(1_000, 4);
    let place = Place::new(palisade_core::Digest::of(&bytes), generation(1));
    write(&bench.blobs, place, u64::MAX, bytes.as_slice()).await.expect("written");
    let shown = Shown { media_type: "video/mp4", disposition: "inline; filename=\"a.mp4\"" };
    let ttl = std::time::Duration::from_mins(1);
    let url = bench.blobs.presigned(place, shown, ttl).await.expect("signed").expect("an address");
    let http = reqwest::Client::new();
    let whole = http.get(&url).send().await.expect("an answer");
    assert_eq!(whole.status().as_u16(), 200, "{}", whole.text().await.unwrap_or_default());
    if shows_types {
        assert_eq!(whole.headers()["content-type"], "video/mp4");
        assert_eq!(whole.headers()["content-disposition"], shown.disposition);
    }
    assert_eq!(whole.bytes().await.expect("bytes"), bytes);
    let part = http.get(&url).header("range", "bytes=10-19").send().await.expect("an answer");
    assert_eq!(part.status().as_u16(), 206);
    assert_eq!(part.bytes().await.expect("bytes"), bytes[10..20]);
}

/// A blob can be written, proved and read by a bucket that has no conditional writes; registers
/// cannot live there, and say so.
async fn without_conditions(bucket: Bucket) {
    let bucket = Bucket { is_conditional: false, ..bucket };
    bucket.prove(5).await.expect("it writes, reads and deletes");
    cells::a_store_without_conditions_refuses_them(&bucket.cells()).await;
    let bench = OfServer::new(bucket);
    let bytes = sample(1_000, 4);
    let place = Place::new(palisade_core::Digest::of(&bytes), generation(1));
    for _ in 0..2 {
        write(&bench.blobs, place, u64::MAX, bytes.as_slice()).await.expect("written");
    }
    bench.damage(place, b"other".to_vec()).await;
    let again = write(&bench.blobs, place, u64::MAX, bytes.as_slice()).await;
    assert!(matches!(again, Err(crate::BlobError::Corrupt { .. })), "{again:?}");
}

const LONG_AGO: Timestamp = Timestamp(1);
