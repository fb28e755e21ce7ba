//! Attacks Palisade: a deterministic simulator, a model checker, and the designs that people use
//! today beside ours, under the same faults.
//!
//! Nothing depends on it but the binary. It must not know how to serve, render or store anything
//! real: it drives the real rules, and models everything around them.

pub mod designs;
pub mod engine;
pub mod explore;
pub mod random;
pub mod sabotage;
pub mod sim;
