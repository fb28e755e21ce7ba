//! Attacks Palisade: simulator, model checker, drill.
//!
//! Nothing depends on it but the binary and tests.

pub mod demo;
pub mod drill;
