//! What every handler sees.

use std::sync::Arc;

use palisade_artefacts::Blobs;
use palisade_core::{clock::Entropy, recipe::RecipeBook};
use palisade_store::Store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    claims::Claims, config::ServerConfig, config::ServerParts, dispatch::Returned,
    job_waits::JobWaits, lock_waits::LockWaits, metrics::Metrics, progress::ProgressBook,
    publisher::Publisher, sessions::Sessions, webhooks::Webhooks,
};

/// The server's parts. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Shared>);

/// What all handlers share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Settings.
    pub(crate) config: ServerConfig,
    /// The records.
    pub(crate) store: Arc<dyn Store>,
    /// The bytes.
    pub(crate) blobs: Arc<dyn Blobs>,
    /// What can be asked for.
    pub(crate) recipes: RecipeBook,
    /// Lease ids and jitter.
    pub(crate) entropy: Arc<dyn Entropy>,
    /// Claims that wait.
    pub(crate) claims: Claims,
    /// Those who wait for a job to be over.
    pub(crate) job_waits: JobWaits,
    /// Those who wait for a lock.
    pub(crate) lock_waits: LockWaits,
    /// What wakes the publisher.
    pub(crate) publisher: Publisher,
    /// Workers' sessions.
    pub(crate) sessions: Sessions,
    /// How far renders are.
    pub(crate) progress: ProgressBook,
    /// Who is told of what.
    pub(crate) webhooks: Webhooks,
    /// Counters.
    pub(crate) metrics: Metrics,
    /// Set once, when the server stops.
    pub(crate) stopping: CancellationToken,
    /// Grants that nobody took, on their way back to the store.
    pub(crate) orphans: mpsc::UnboundedSender<Returned>,
}

impl App {
    pub(crate) fn new(
        config: ServerConfig,
        parts: ServerParts,
        orphans: mpsc::UnboundedSender<Returned>,
    ) -> Self {
        let ServerParts { store, blobs, recipes, entropy } = parts;
        let sessions = Sessions::new(&config, store.now());
        Self(Arc::new(Shared {
            config,
            store,
            blobs,
            recipes,
            entropy,
            claims: Claims::default(),
            job_waits: JobWaits::default(),
            lock_waits: LockWaits::default(),
            publisher: Publisher::default(),
            sessions,
            progress: ProgressBook::default(),
            webhooks: Webhooks::default(),
            metrics: Metrics::default(),
            stopping: CancellationToken::new(),
            orphans,
        }))
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
