//! One process to a data folder.

use crate::sqlite::{OpenError, Place, SqliteEngine};

use super::{children, driver::Driver};

#[test]
fn a_second_process_is_refused_and_told_who_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let driver = Driver::begin(folder.path());
    let child = children::spawn("sqlite::tests::lock::child_opens", folder.path(), None);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let expected = format!("in use by another process, pid {}", std::process::id());
    assert!(output.status.success() && said.contains(&expected), "{said}");
    // Once the first has gone, however it went, the folder is free.
    drop(driver);
    Driver::begin(folder.path());
}

#[test]
#[ignore = "a child of the test above"]
fn child_opens() {
    let Some(folder) = children::folder() else { return };
    let now = palisade_core::Timestamp(1);
    match SqliteEngine::open(Place::Folder(folder), now) {
        Err(error @ OpenError::InUse { .. }) => println!("{error}"),
        other => panic!("it should be refused: {other:?}"),
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let now = palisade_core::Timestamp(1);
    let error = SqliteEngine::open(Place::Folder(file.join("data")), now).unwrap_err();
    assert!(matches!(&error, OpenError::Folder { folder, .. } if folder.ends_with("data")));
}
