//! What came of the demonstration.

use std::path::PathBuf;

use palisade_api::wire::{EventView, JobView};
use palisade_core::history::What;
use serde::Serialize;

/// What came of the demonstration.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The exports.
    pub jobs: Vec<JobView>,
    /// The journal's entries of all of them, in their order.
    pub events: Vec<EventView>,
    /// What is missing, wrong, or was completed more than once. Empty when all is well.
    pub complaints: Vec<String>,
    /// Where the files are.
    pub folder: PathBuf,
}

impl Report {
    /// What was refused, and why.
    pub fn refused(&self) -> impl Iterator<Item = &EventView> {
        self.events.iter().filter(|entry| matches!(entry.event.what, What::Refused { .. }))
    }
}
