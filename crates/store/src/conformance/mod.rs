//! One suite for every store: what the contract of [`Store`](crate::Store) promises, behaviour by
//! behaviour.
//!
//! A store's test hands [`exercise`] a way to make an empty one on a given clock. Each behaviour
//! gets a store of its own.

pub mod bench;

pub use bench::{Bench, ManualClock};
