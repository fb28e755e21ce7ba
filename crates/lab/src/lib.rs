//! Attacks Palisade: a deterministic simulator, a model checker, and the designs that people use
//! today beside ours, under the same faults; and a drill of real processes.
//!
//! Nothing depends on it but the binary and tests. The simulator and the model checker drive the
//! real rules, the real store and the real keeper, and model everything around them.

pub mod demo;
pub mod designs;
pub mod drill;
pub mod engine;
pub mod explore;
pub mod linear;
mod notice;
pub mod random;
pub mod sabotage;
pub mod sim;
