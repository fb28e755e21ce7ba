//! The pointer to the newest report, in a shared folder or a bucket, moved by whoever holds the lock.

use std::{path::Path, sync::Arc};

use palisade_artefacts::{
    Location,
    register::{DirectoryCells, Key, Op, Pace, Pointer, Register, RegisterError, Stamp},
};
use palisade_core::lease::Pair;

/// Opens a folder's registers.
pub(crate) async fn open(folder: &Path) -> Register {
    let cells = DirectoryCells::open(folder, 5_000).await.expect("the folder can be used");
    Register::new(Arc::new(cells), Pace::default())
}

/// Opens a bucket's registers (`s3://bucket/prefix`), with keys from the environment. It is tried
/// out first: a store that lets two writers win is refused by name.
pub(crate) async fn open_bucket(address: &str, nonce: u128) -> Register {
    let location: Location = address.parse().expect("a bucket's address");
    let environment: Vec<_> = std::env::vars().collect();
    let opened = location.open_proven(&environment, nonce).await.expect("it can be trusted");
    let cells = opened.bucket.expect("it is a bucket").cells();
    Register::new(Arc::new(cells), Pace::default())
}

/// A new holder's first act.
pub(crate) async fn begin(
    register: &Register,
    pair: Pair,
    nonce: u128,
) -> Result<(), RegisterError> {
    register.raise(&key(), stamp(pair), nonce).await.map(drop)
}

/// Moves the pointer. A holder that was replaced is refused, whenever it wakes.
pub(crate) async fn publish(
    register: &Register,
    pair: Pair,
    file: &str,
    nonce: u128,
) -> Result<(), RegisterError> {
    let pointer: Pointer = file.parse().expect("a file's name");
    register.put(&key(), stamp(pair), pointer, nonce).await.map(drop)
}

/// Which register.
pub(crate) fn key() -> Key {
    "reports/newest".parse().expect("a key")
}

fn stamp(pair: Pair) -> Stamp {
    Stamp::grant(pair.token, pair.lease_id, Op::FIRST).expect("a pair that was granted")
}
