//! What a store tells of what it committed.

use std::sync::Arc;

use palisade_core::history::Event;
use tokio::sync::broadcast;

/// Entries of the journal, in its order, told after their commit. None at all: what was told may
/// be of another history than the one that is served now, and something may be missing.
pub type Batch = Arc<[Event]>;

/// How many batches a slow listener may be behind before it misses some.
const BACKLOG: usize = 4_096;

/// Tells listeners what was committed.
#[derive(Debug, Clone)]
pub struct Announcer(broadcast::Sender<Batch>);

impl Default for Announcer {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Announcer {
    /// Tells of a batch. Nobody listening is fine.
    pub fn announce(&self, events: Vec<Event>) {
        if !events.is_empty() {
            // The error says that nobody listens.
            let _ = self.0.send(events.into());
        }
    }

    /// Tells that something may be missing: everybody must look for itself, as after a lag.
    pub fn announce_gap(&self) {
        let _ = self.0.send(Batch::default());
    }

    /// Listens from now on. A listener that lags is told so, and must look for itself.
    pub fn listen(&self) -> broadcast::Receiver<Batch> {
        self.0.subscribe()
    }
}
