//! Claims jobs, runs their renders under a lease, and commits what came of them.

pub mod clock;
pub mod media;
pub mod process;
pub mod recipes;
pub mod render;
