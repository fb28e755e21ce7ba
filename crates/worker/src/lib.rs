//! Claims jobs, runs their renders under a lease, and commits what came of them.
//!
//! A [`Worker`] has three loops. The claims (one long poll at a time) and the attempts run on the
//! caller's runtime. The heartbeat has a thread, a runtime and connections of its own: it ticks
//! the keepers of all leases, and freezes, thaws and kills renders by itself. Between them lies
//! one table of leases behind a lock that is never held across a wait.
//!
//! Every effect asks the keeper first and carries its pair all the same: the answer may be stale
//! when the bytes arrive, and then it is the fence that refuses them.
//!
//! Must not know: stores, SQL.

mod assignment;
mod attempt;
mod backoff;
mod claims;
pub mod clock;
pub mod config;
pub mod control_plane;
mod data_dir;
mod desk;
pub mod disk;
pub mod entropy;
pub mod events;
mod heartbeat;
mod leases;
pub mod media;
mod offer;
pub mod process;
pub mod recipes;
pub mod render;
pub mod render_runner;
mod room;
pub mod runner;
mod switch;
#[cfg(test)]
mod testing;
pub mod timer;
mod worker;

pub use config::{Components, WorkerConfig};
pub use data_dir::DataDirError;
pub use worker::{StartError, Worker};
