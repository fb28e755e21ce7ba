//! What SQLite adds to the contract: durability, restarts, full disks, one process to a folder.

mod alone;
mod children;
mod commit_fails;
pub(crate) mod comparison;
mod condemned;
mod constraints;
mod contract;
mod cycle;
mod deliveries;
mod driver;
mod full;
mod high_water;
mod killed;
mod lock;
mod publications;
mod restart;
mod restart_locks;
mod retention;
