//! How much room a file system has.

use std::{io, path::Path};

/// Says how much room there is.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// How much may still be written where `path` is, in bytes.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// The system's own word.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        // What is reserved for root is not ours.
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}
