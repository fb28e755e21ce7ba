//! The pointer to the newest report, in a shared folder, moved by whoever holds the lock.

use std::{path::Path, sync::Arc};

use palisade_artefacts::register::{
    DirectoryCells, Key, Op, Pace, Pointer, Register, RegisterError, Stamp,
};
use palisade_core::lease::Pair;

/// Opens the folder's registers.
pub(crate) async fn open(folder: &Path) -> Register {
    let cells = DirectoryCells::open(folder, 5_000).await.expect("the folder can be used");
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
