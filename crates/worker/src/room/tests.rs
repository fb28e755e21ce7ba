use std::path::Path;

use super::*;

#[derive(Debug)]
struct Full(u64);

impl Disk for Full {
    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(self.0)
    }
}

fn token(number: u64) -> Number {
    Number::new(number).unwrap()
}

#[test]
fn what_was_promised_and_is_not_used_yet_is_not_promised_twice() {
    let scratch = tempfile::tempdir().unwrap();
    let room = Room::new(Arc::new(Full(1_100)), "/".into(), 100);
    assert_eq!(room.free_bytes().unwrap(), 1_000);
    let folders = vec![scratch.path().to_owned()];
    let first = room.reserve(token(1), 600, folders).unwrap().unwrap();
    assert_eq!(room.free_bytes().unwrap(), 400);
    let refused = room.reserve(token(2), 401, Vec::new()).unwrap().unwrap_err();
    assert_eq!(refused, NoRoom { needed_bytes: 401, free_bytes: 400 });
    // What it has written the disk counts itself.
    std::fs::write(scratch.path().join("out"), [0; 200]).unwrap();
    assert_eq!(room.free_bytes().unwrap(), 600);
    std::fs::write(scratch.path().join("more"), [0; 900]).unwrap();
    assert_eq!(room.free_bytes().unwrap(), 1_000, "more than promised");
    drop(first);
    let _second = room.reserve(token(2), 1_000, Vec::new()).unwrap().unwrap();
    assert_eq!(room.free_bytes().unwrap(), 0);
}

#[test]
fn what_is_kept_free_is_never_promised() {
    let room = Room::new(Arc::new(Full(99)), "/".into(), 100);
    assert_eq!(room.free_bytes().unwrap(), 0);
    assert!(room.reserve(token(1), 1, Vec::new()).unwrap().is_err());
}
