//! What the edges hand in: a clock and a source of randomness. Only the traits live here.

use crate::Timestamp;

/// A clock that counts suspended time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// A source of randomness that nobody can guess.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// The next 128 bits.
    fn next_u128(&self) -> u128;
}
