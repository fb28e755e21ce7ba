//! The HTTP face of Palisade.
//!
//! Checks what comes from outside once, turns it into the core's types, asks the store, and tells
//! the answer. Wakes those who wait when the store has committed something for them. Decides
//! nothing about jobs itself: who may do what is the rules', inside the store's transaction.
//!
//! Must not know: ffmpeg, SQL, processes.

mod accept;
mod app;
mod claims;
mod collector;
mod config;
mod dispatch;
mod duty;
mod edge;

mod job_waits;
mod lock_waits;
mod metrics;
mod openapi;
mod problems;
mod progress;
mod publisher;
mod ranges;
mod router;
mod routes;
mod server;
mod sessions;
mod system;
mod webhooks;

pub use collector::Collection;
pub use config::{ServerConfig, ServerParts, Tokens, TokensError};
pub use server::{Server, StartError};
pub use system::{SystemClock, SystemEntropy};
pub use webhooks::{AllowedAddresses, Network, NotANetwork};
