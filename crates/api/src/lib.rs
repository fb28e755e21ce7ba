//! Wire types, problem codes and the HTTP client of Palisade.
//!
//! Wire types are not the domain's: the core can change without breaking clients, and what comes
//! from outside is checked once, where it is turned into the core's types.
//!
//! Must not know: stores.

pub mod client;
pub mod guard;
pub mod problem;
pub mod wire;

pub use client::{Client, ClientError, EventStream, EventsFrom};
pub use guard::LockGuard;
pub use problem::Problem;
