use std::sync::Arc;

use futures_util::StreamExt as _;
use object_store::{memory::InMemory, path::Path};

use super::*;
use crate::{Location, ObjectBlobs};

fn ours(place: &str, store: &str) -> Mark {
    Mark { place: place.to_owned(), store: store.to_owned() }
}

fn bucket(is_conditional: bool) -> Opened {
    let bucket = Bucket::over("memory", Arc::new(InMemory::new()), Path::from("own"));
    let bucket = Bucket { is_conditional, ..bucket };
    let blobs = Arc::new(ObjectBlobs::new(bucket.clone()));
    Opened { name: bucket.name.clone(), blobs, bucket: Some(bucket), folder: None }
}

async fn folder(at: &std::path::Path) -> Opened {
    Location::Folder(at.to_owned()).open(&[]).await.unwrap()
}

#[tokio::test]
async fn the_first_store_marks_a_place_and_all_later_ones_read_its_mark() {
    let at = tempfile::tempdir().unwrap();
    for opened in [bucket(true), bucket(false), folder(at.path()).await] {
        let first = ours("there", "one");
        assert_eq!(opened.mark(&first).await.unwrap(), Some(first.clone()), "{}", opened.name);
        assert_eq!(
            opened.mark(&ours("here", "two")).await.unwrap(),
            Some(first),
            "{}",
            opened.name
        );
    }
    // Nothing else is left, and no blob is made of it.
    let names: Vec<_> =
        std::fs::read_dir(at.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains('.')), "{names:?}");
    assert_eq!(folder(at.path()).await.blobs.list().await.unwrap().count().await, 0);
}

#[tokio::test]
async fn of_servers_that_come_at_once_all_read_one_mark() {
    let opened = bucket(true);
    let mut asking = tokio::task::JoinSet::new();
    for index in 0..16 {
        let opened = opened.clone();
        asking.spawn(async move { opened.mark(&ours(&format!("p{index}"), "one")).await.unwrap() });
    }
    let marks = asking.join_all().await;
    assert!(marks.iter().all(|mark| mark.is_some() && *mark == marks[0]), "{marks:?}");
}

#[tokio::test]
async fn what_is_no_mark_is_told_as_such() {
    let at = tempfile::tempdir().unwrap();
    let opened = folder(at.path()).await;
    std::fs::write(at.path().join(FILE_NAME), "somebody's notes").unwrap();
    let error = opened.mark(&ours("here", "two")).await.unwrap_err();
    assert!(error.to_string().contains("somebody's notes"), "{error}");
}

#[tokio::test]
async fn memory_needs_none() {
    let opened = Location::Memory.open(&[]).await.unwrap();
    assert_eq!(opened.mark(&ours("here", "two")).await.unwrap(), None);
}
