//! A disk that is full, and how fast one is that is not.

use std::{fs, path::Path};

use futures_util::TryStreamExt;
use palisade_core::Digest;

use crate::{
    BlobError, BlobErrorKind, Blobs, ByteRange, LocalBlobs, Place,
    conformance::blobs::{generation, sample},
    read_to_vec, write,
};

const DISK_BYTES: usize = 2 * 1024 * 1024;

/// A small disk in memory; unmounted when the test ends, however it ends.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// None without the privilege to mount.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let options = std::ffi::CString::new(format!("size={DISK_BYTES}")).expect("no zero byte");
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", folder.path(), "tmpfs", flags, Some(options.as_c_str()))
            .map_err(|error| eprintln!("SKIPPED: cannot mount a small disk: {error}"))
            .ok()?;
        Some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.folder.path(), rustix::mount::UnmountFlags::DETACH);
    }
}

#[tokio::test]
async fn a_full_disk_is_said_to_be_full_and_nothing_is_left_of_the_upload() {
    let Some(disk) = SmallDisk::mount() else { return };
    let blobs = LocalBlobs::open(disk.path()).await.expect("opened");
    let small = sample(DISK_BYTES / 2, 1);
    let kept = Place::new(Digest::of(&small), generation(1));
    write(&blobs, kept, u64::MAX, small.as_slice()).await.expect("fits");

    let large = sample(DISK_BYTES, 2);
    let place = Place::new(Digest::of(&large), generation(2));
    let refused = write(&blobs, place, u64::MAX, large.as_slice()).await.expect_err("no room");
    assert_eq!(refused.kind(), BlobErrorKind::DiskFull, "{refused:?}");
    assert_eq!(fs::read_dir(disk.path().join("arriving")).expect("a folder").count(), 0);
    let read = read_to_vec(&blobs, place, ByteRange::FULL).await;
    assert!(matches!(read, Err(BlobError::NotFound(_))), "{read:?}");

    // What was there is whole, and there is room again for what fits.
    assert!(read_to_vec(&blobs, kept, ByteRange::FULL).await.expect("kept") == small);
    let third = sample(DISK_BYTES / 4, 3);
    let place = Place::new(Digest::of(&third), generation(3));
    write(&blobs, place, u64::MAX, third.as_slice()).await.expect("fits again");
}

/// Run by hand: `cargo nextest run -p palisade-artefacts --run-ignored only --no-capture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures; says nothing about right or wrong"]
#[expect(clippy::disallowed_methods, reason = "a measurement, on a machine that is awake")]
async fn measure_throughput() {
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = LocalBlobs::open(folder.path()).await.expect("opened");
    for (count, size) in [(4_u32, 256 * 1024 * 1024_u32), (200, 64 * 1024)] {
        let bytes = sample(size as usize, 1);
        let digest = Digest::of(&bytes);
        let total_mb = f64::from(count) * f64::from(size) / 1e6;
        let places: Vec<_> =
            (1..=count).map(|number| Place::new(digest, generation(number.into()))).collect();
        let begun = std::time::Instant::now();
        for place in &places {
            write(&blobs, *place, u64::MAX, bytes.as_slice()).await.expect("written");
        }
        let wrote_s = begun.elapsed().as_secs_f64();
        let begun = std::time::Instant::now();
        for place in &places {
            let reader = blobs.open(*place, ByteRange::FULL).await.expect("opened");
            let read = reader.chunks.try_fold(0, async |sum, chunk| Ok(sum + chunk.len()));
            assert_eq!(read.await.expect("read"), bytes.len());
        }
        let read_s = begun.elapsed().as_secs_f64();
        println!(
            "{count} blobs of {size} bytes: written {:.0} MB/s ({:.2} ms each), read {:.0} MB/s",
            total_mb / wrote_s,
            wrote_s * 1e3 / f64::from(count),
            total_mb / read_s
        );
    }
}
