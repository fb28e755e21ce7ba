//! The fenced register: one fence and one pointer, changed only by compare-and-swap, with no server
//! between the writer and the store.
//!
//! A writer reads the record with its version, asks the [`rule`], and swaps the new record in on
//! the condition that the version is still that one. There is no moment between check and write: a
//! writer that was paused there loses the swap, reads again, and is refused.
//!
//! A register cannot ask anybody whether a number was ever granted, nor who holds the lock now. So
//! a new holder's first act is [`Register::raise`], which shuts out its predecessor before it has
//! written anything; the author (lease id) stands beside the number, and an equal number from
//! another author is refused; and for a number that should never have been there, an operator has
//! [`Register::reset`].

mod bucket;
mod cells;
mod directory;
mod key;
mod memory;
pub mod probe;
mod record;
pub mod rule;

use std::{sync::Arc, time::Duration};

use palisade_core::Number;

pub use self::{
    bucket::BucketCells,
    cells::{Cell, CellError, CompareAndSwap, Swap, Version},
    directory::DirectoryCells,
    key::Key,
    memory::MemoryCells,
    record::{Kind, Pointer, Record, Written},
    rule::{Decision, Op, Refusal, Request, StaleReason, Stamp},
};

/// How often and how patiently a register asks again when others are in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many swaps are tried before giving up. Each lost swap is another writer's success.
    pub attempts_max: u32,
    /// The longest pause after the first lost swap, in ms; doubled after each further one.
    pub pause_ms_first: u64,
    /// No pause is longer, in ms.
    pub pause_ms_max: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { attempts_max: 100, pause_ms_first: 5, pause_ms_max: 500 }
    }
}

/// What a change came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The record as it stood when the change was in it.
    pub record: Record,
    /// Whether it had been done before this call: a repeat, or a reply that had been lost.
    pub repeated: bool,
}

/// A change that was not made, or is not known to be.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The rule refuses it. Asking again does not help.
    ///
    /// After an [`RegisterError::Unknown`] of the same change this says that it does not stand,
    /// not that it never stood: another may have replaced it.
    #[error("the register {key} refuses the change")]
    Refused {
        /// Which register.
        key: Key,
        /// Why.
        source: Refusal,
    },
    /// Nothing was done. Ask again later.
    #[error("the register {key} could not be reached, and nothing was done")]
    Unavailable {
        /// Which register.
        key: Key,
        /// What the store said.
        source: CellError,
    },
    /// It may have been done, or may still be. Ask again with the same number, author and op: the
    /// answer will say which. Until then, delete nothing that the change names.
    #[error("it is not known whether the register {key} has changed")]
    Unknown {
        /// Which register.
        key: Key,
        /// What the store said when the answer got lost.
        source: CellError,
    },
    /// Others were faster each time. Nothing was done.
    #[error("others changed the register {key} in all of {attempts} attempts")]
    Contended {
        /// Which register.
        key: Key,
        /// How often it was tried.
        attempts: u32,
    },
    /// What is stored is no record of this register. An operator has to look.
    #[error("the register {key} is corrupt: {found}")]
    Corrupt {
        /// Which register.
        key: Key,
        /// What was found.
        found: String,
    },
}

/// Registers in one store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Register {
    cells: Arc<dyn CompareAndSwap>,
    pace: Pace,
}

impl Register {
    /// Registers in `cells`. A bucket is to be probed first ([`probe::probe`]).
    pub fn new(cells: Arc<dyn CompareAndSwap>, pace: Pace) -> Self {
        Self { cells, pace }
    }

    /// The record; none when nobody has written or raised it yet.
    pub async fn read(&self, key: &Key) -> Result<Option<Record>, RegisterError> {
        Ok(self.load(key).await?.map(|(record, _)| record))
    }

    /// Makes the register point at `pointer`.
    ///
    /// `nonce` is random, drawn anew for each call: equal bytes must not have equal versions.
    pub async fn put(
        &self,
        key: &Key,
        stamp: Stamp,
        pointer: Pointer,
        nonce: u128,
    ) -> Result<Done, RegisterError> {
        self.apply(key, &Request::Write { stamp, pointer: Some(pointer) }, nonce).await
    }

    /// Makes the register point at nothing. The fence stays, as a tombstone.
    pub async fn delete(
        &self,
        key: &Key,
        stamp: Stamp,
        nonce: u128,
    ) -> Result<Done, RegisterError> {
        self.apply(key, &Request::Write { stamp, pointer: None }, nonce).await
    }

    /// Raises the fence to the stamp's number and writes nothing (the stamp's op has no say): a
    /// new holder's first act.
    pub async fn raise(&self, key: &Key, stamp: Stamp, nonce: u128) -> Result<Done, RegisterError> {
        self.apply(key, &Request::Raise { stamp }, nonce).await
    }

    /// The operator's reset: sets the fence to `fence`, lower or higher, forgets the author and
    /// the kind of number, and keeps what is pointed at.
    ///
    /// For a register that a wrong client has shut with a number from the future. Everybody whose
    /// number is not below `fence` gets in again, late pausers included: stop the writers first.
    /// `seen` is the revision that the operator has looked at; if another change came since, the
    /// reset is refused. Repeated, it takes the nonce of the first time.
    pub async fn reset(
        &self,
        key: &Key,
        seen: u64,
        fence: Number,
        nonce: u128,
    ) -> Result<Done, RegisterError> {
        self.apply(key, &Request::Reset { seen, fence }, nonce).await
    }

    /// Reads, asks the rule, swaps; again when another came between.
    pub async fn apply(
        &self,
        key: &Key,
        request: &Request,
        nonce: u128,
    ) -> Result<Done, RegisterError> {
        // A swap whose answer got lost: the version that it was conditional on, and the error.
        // It may still land for as long as the register is at that version.
        let mut open: Option<(Option<Version>, CellError)> = None;
        for attempt in 0..self.pace.attempts_max {
            self.pause(attempt, nonce).await;
            let loaded = match self.load(key).await {
                Ok(loaded) => loaded,
                Err(error) => return Err(unknown_if_open(key, open, error)),
            };
            let (record, version) = loaded.unzip();
            // Versions never come back, so a swap on another version than today's is settled.
            open = open.filter(|(expected, _)| *expected == version);
            let new = match rule::decide(key, record.as_ref(), request, nonce) {
                Ok(Decision::Already(record)) => return Ok(Done { record, repeated: true }),
                Ok(Decision::Change(new)) => new,
                Err(source) => return Err(RegisterError::Refused { key: key.clone(), source }),
            };
            match self.cells.swap(key, version.as_ref(), new.encode()).await {
                Swap::Swapped => return Ok(Done { record: new, repeated: false }),
                Swap::Conflict => {}
                Swap::NotDone(source) => {
                    let error = RegisterError::Unavailable { key: key.clone(), source };
                    return Err(unknown_if_open(key, open, error));
                }
                // Swapping again is safe: on the same version, only one of the two can land.
                Swap::Unknown(error) => open = Some((version, error)),
            }
        }
        let error = RegisterError::Contended { key: key.clone(), attempts: self.pace.attempts_max };
        Err(unknown_if_open(key, open, error))
    }

    async fn load(&self, key: &Key) -> Result<Option<(Record, Version)>, RegisterError> {
        let cell = self
            .cells
            .read(key)
            .await
            .map_err(|source| RegisterError::Unavailable { key: key.clone(), source })?;
        let Some(cell) = cell else { return Ok(None) };
        let record = Record::decode(key, &cell.bytes)
            .map_err(|found| RegisterError::Corrupt { key: key.clone(), found })?;
        Ok(Some((record, cell.version)))
    }

    /// Waits before another attempt; the nonce spreads those who lost to the same winner.
    async fn pause(&self, attempt: u32, nonce: u128) {
        if attempt == 0 {
            return;
        }
        let doubled = 1_u64.checked_shl(attempt - 1).unwrap_or(u64::MAX);
        let longest_ms =
            self.pace.pause_ms_first.saturating_mul(doubled).min(self.pace.pause_ms_max);
        let spread = nonce.rotate_left(attempt.wrapping_mul(7)) % (u128::from(longest_ms) + 1);
        let pause_ms = u64::try_from(spread).expect("a remainder is below its divisor");
        if pause_ms == 0 {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
    }
}

/// An error that ends the attempts says "nothing was done" only if no swap of ours is on its way.
fn unknown_if_open(
    key: &Key,
    open: Option<(Option<Version>, CellError)>,
    error: RegisterError,
) -> RegisterError {
    match open {
        Some((_, source)) => RegisterError::Unknown { key: key.clone(), source },
        None => error,
    }
}
