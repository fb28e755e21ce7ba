use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn open(root: &Path) -> DataDir {
    DataDir::open(root).unwrap()
}

#[test]
fn an_attempts_folders_are_private_and_go_with_it() {
    let root = tempfile::tempdir().unwrap();
    let data_dir = open(root.path());
    let token = Number::new(7).unwrap();
    let folders = data_dir.attempt("j3".parse().unwrap(), token).unwrap();
    assert_eq!(folders.scratch, root.path().join("scratch/j3-7"));
    let paths = [folders.scratch.clone(), folders.inputs.clone()];
    for path in &paths {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir(path.join("deep")).unwrap();
        fs::write(path.join("deep/file"), "content").unwrap();
    }
    assert_eq!(used_bytes(&paths[0]), 7);
    drop(folders);
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn what_an_earlier_life_left_is_removed_but_links_are_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "stays").unwrap();
    let data_dir = open(root.path());
    let scratch = data_dir.scratch_root();
    fs::create_dir_all(scratch.join("j1-2/out")).unwrap();
    std::os::unix::fs::symlink(outside.path(), scratch.join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), scratch.join("j1-2/out/link")).unwrap();
    fs::write(data_dir.inputs_root().join("stray"), "x").unwrap();
    assert_eq!(data_dir.clear().unwrap(), 3);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
    assert!(outside.path().join("file").exists());
}

#[test]
fn a_second_owner_is_refused_until_the_first_has_gone() {
    let root = tempfile::tempdir().unwrap();
    let first = open(root.path());
    assert!(matches!(DataDir::open(root.path()), Err(DataDirError::InUse { .. })));
    drop(first);
    open(root.path());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = DataDir::open(&file.join("data")).unwrap_err().to_string();
    assert!(refused.contains("file/data"), "{refused}");
}
