//! What a worker is told (settings) and what it is made of (components).

use std::{path::PathBuf, sync::Arc};

use palisade_core::{
    Invalid, WorkerName, clock::Entropy, keeper::KeeperConfig, limits, recipe::RecipeBook,
};

use crate::{
    control_plane::Connector, disk::Disk, events::EventSink, runner::Runner, timer::Timer,
};

/// Most renders at a time.
pub const SLOTS_MAX: usize = 1_000;

/// A worker's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// What its operator calls it.
    pub name: WorkerName,
    /// How many renders may run at a time; 1 to [`SLOTS_MAX`].
    pub slots: usize,
    /// The leases' length, in ms.
    pub ttl_ms: u64,
    /// How long a render is kept frozen while nobody confirms its lease, in ms.
    pub doubt_grace_ms: u64,
    /// The folder that it owns: scratch, inputs, a lock.
    pub data_dir: PathBuf,
    /// How long renders may go on after [`drain`](crate::Worker::drain), in ms. None: until they
    /// are done.
    pub drain_for_ms: Option<u64>,
    /// How long one claim waits at the server, in ms.
    pub wait_ms: u64,
    /// How much of the disk is left free whatever a recipe expects, in bytes.
    pub free_bytes_min: u64,
}

impl WorkerConfig {
    /// Usual settings: one slot, the usual ttl, five minutes of doubt, 256 MiB kept free.
    pub fn new(name: WorkerName, data_dir: PathBuf) -> Self {
        Self {
            name,
            slots: 1,
            ttl_ms: limits::TTL_MS_DEFAULT,
            doubt_grace_ms: 5 * 60 * 1_000,
            data_dir,
            drain_for_ms: None,
            wait_ms: 20_000,
            free_bytes_min: 256 << 20,
        }
    }

    /// Checks the ranges.
    pub fn validate(&self) -> Result<(), Invalid> {
        let slots = u64::try_from(self.slots).unwrap_or(u64::MAX);
        in_range("slots", slots, 1, SLOTS_MAX as u64)?;
        in_range("ttl_ms", self.ttl_ms, limits::TTL_MS_MIN, limits::TTL_MS_MAX)?;
        in_range("doubt_grace_ms", self.doubt_grace_ms, 0, limits::TTL_MS_MAX)?;
        in_range("wait_ms", self.wait_ms, 0, limits::WAIT_MS_MAX)
    }

    /// How a lease of that length is kept.
    pub(crate) fn keeper(&self, ttl_ms: u64) -> KeeperConfig {
        KeeperConfig::for_ttl(ttl_ms, self.doubt_grace_ms)
    }
}

fn in_range(field: &str, value: u64, least: u64, most: u64) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Invalid::new(field, &value.to_string(), format!("must be {least} to {most}")))
}

/// What a worker is made of.
#[derive(Debug, Clone)]
pub struct Components {
    /// The way to the server.
    pub connector: Arc<dyn Connector>,
    /// The clock: counts suspended time.
    pub timer: Arc<dyn Timer>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// What renders.
    pub runner: Arc<dyn Runner>,
    /// The recipes it knows.
    pub recipes: Arc<RecipeBook>,
    /// How much room there is.
    pub disk: Arc<dyn Disk>,
    /// Who is told of what happens.
    pub events: Arc<dyn EventSink>,
}
