//! A crash between every two steps of a write, and what the next start finds.

use std::{fs, mem, sync::atomic::AtomicU64};

use bytes::Bytes;
use futures_util::TryStreamExt;
use palisade_core::Digest;

use super::{
    super::{layout::Layout, steps, sync_folder},
    Folder,
};
use crate::{
    BlobError, Blobs, ByteRange, LocalBlobs, Place,
    conformance::blobs::{Bench, generation, sample},
    read_to_vec, write,
};

/// How many steps [`write_until`] knows.
const STEPS: usize = 7;

/// Writes as an upload does, and dies after `survived` steps: nothing is cleaned up any more, and
/// the kernel closes the file, with its lock.
fn write_until(survived: usize, root: &std::path::Path, place: Place, bytes: &[u8]) {
    let layout = Layout::new(root.to_path_buf());
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut arriving = None;
    for step in 0..survived {
        if step == 0 {
            arriving = steps::create(&layout.arriving(), &AtomicU64::new(0)).ok();
            continue;
        }
        let arriving = arriving.as_mut().expect("created");
        match step {
            1 => steps::append(arriving, &Bytes::copy_from_slice(first)).expect("appended"),
            2 => steps::append(arriving, &Bytes::copy_from_slice(second)).expect("appended"),
            3 => steps::settle(arriving).expect("settled"),
            4 => steps::link(arriving, place, &layout.file(place), bytes.len() as u64)
                .expect("linked"),
            5 => fs::remove_file(arriving.path()).expect("unlinked"),
            6 => sync_folder(&layout.folder(place)).expect("synced"),
            _ => unreachable!("there are {STEPS} steps"),
        }
    }
    if let Some(arriving) = arriving {
        arriving.file().unlock().expect("the kernel unlocks what the dead had locked");
        mem::forget(arriving);
    }
}

#[tokio::test]
async fn after_a_crash_between_any_two_steps_there_is_nothing_or_the_whole_blob() {
    let bytes = sample(300_000, 1);
    let place = Place::new(Digest::of(&bytes), generation(9));
    for survived in 0..=STEPS {
        let folder = Folder::new().await;
        write_until(survived, folder.blobs.root(), place, &bytes);
        let blobs = folder.reopened().await;
        assert_eq!(folder.leftovers().await, 0, "swept, after {survived} steps");
        match read_to_vec(&blobs, place, ByteRange::FULL).await {
            Ok(read) => {
                assert!(survived >= 5, "there after {survived} steps");
                assert!(read == bytes, "other bytes after {survived} steps");
            }
            Err(BlobError::NotFound(_)) => assert!(survived < 5, "gone after {survived} steps"),
            Err(error) => panic!("after {survived} steps: {error:?}"),
        }
        // The attempt is repeated, and succeeds whatever the dead one left.
        write(&blobs, place, u64::MAX, bytes.as_slice()).await.expect("written again");
        assert!(read_to_vec(&blobs, place, ByteRange::FULL).await.expect("read") == bytes);
        assert_eq!(folder.leftovers().await, 0);
    }
}

#[tokio::test]
async fn opening_the_folder_again_leaves_an_upload_under_way_alone() {
    let folder = Folder::new().await;
    let mut upload = folder.blobs.begin(None, u64::MAX).await.expect("begun");
    upload.write(Bytes::from_static(b"half, ")).await.expect("written");
    let second = folder.reopened().await;
    assert_eq!(folder.leftovers().await, 1, "its writer lives");
    upload.write(Bytes::from_static(b"and the rest")).await.expect("written");
    let place = upload.finish().await.expect("whole").place(generation(1)).await.expect("placed");
    let read = read_to_vec(&second, place, ByteRange::FULL).await.expect("read");
    assert_eq!(read, b"half, and the rest");
}

#[tokio::test]
async fn an_open_reader_keeps_its_bytes_when_the_blob_is_deleted() {
    let folder = Folder::new().await;
    let bytes = sample(1_000_000, 2);
    let place = Place::new(Digest::of(&bytes), generation(1));
    write(&folder.blobs, place, u64::MAX, bytes.as_slice()).await.expect("written");
    let reader = folder.blobs.open(place, ByteRange::FULL).await.expect("opened");
    folder.blobs.delete(place).await.expect("deleted");
    let chunks: Vec<Bytes> = reader.chunks.try_collect().await.expect("read");
    assert!(chunks.concat() == bytes);
}

#[tokio::test]
async fn a_blobs_file_is_read_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new().await;
    let place = Place::new(Digest::of(b"x"), generation(1));
    write(&folder.blobs, place, u64::MAX, &b"x"[..]).await.expect("written");
    let path = folder.blobs.local_path(place).expect("a file");
    let mode = fs::metadata(path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o222, 0, "nobody may write to it");
}

#[tokio::test]
async fn a_folder_that_is_gone_is_not_taken_for_a_blob_that_is_not_there() {
    let folder = Folder::new().await;
    let place = Place::new(Digest::of(b"x"), generation(1));
    fs::remove_dir_all(folder.blobs.root()).expect("removed");
    let blobs: &LocalBlobs = &folder.blobs;
    let opened = blobs.open(place, ByteRange::FULL).await.map(|_| ());
    let size = blobs.size(place).await.map(|_| ());
    let deleted = blobs.delete(place).await;
    let written = write(blobs, place, u64::MAX, &b"x"[..]).await.map(|_| ());
    for failed in [opened, size, deleted, written] {
        assert!(matches!(failed, Err(BlobError::Io { .. })), "{failed:?}");
    }
    let listed = blobs.list().await.expect("a list").try_collect::<Vec<_>>().await;
    assert!(matches!(listed, Err(BlobError::Io { .. })), "{listed:?}");
}
