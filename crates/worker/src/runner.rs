//! The seam to whatever renders: real children in production, a script in tests and simulations.

use std::{io, path::Path, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::render::{RenderError, RenderProgress, RenderRequest, Rendered};

/// Runs renders.
pub trait Runner: Send + Sync + std::fmt::Debug {
    /// What this worker's tool of that name says of its version (`5.1.9`). None: it has none.
    fn tool_version(&self, tool: &str) -> Option<String>;

    /// Starts a render. It writes below the request's scratch folder alone.
    fn start(&self, request: RenderRequest) -> Run;

    /// Ends all processes that earlier lives of this worker left below `scratch_root`, and
    /// returns when they are gone, with their pids. Blocks; called once, at start.
    fn end_leftovers(&self, scratch_root: &Path) -> io::Result<Vec<i32>>;
}

/// A render that was started.
pub struct Run {
    /// How it is steered.
    pub steer: Arc<dyn Steer>,
    /// How far it is.
    pub progress: watch::Receiver<RenderProgress>,
    /// What comes of it. Resolves only once nothing of it runs any more, also after a kill.
    /// Dropped early, it ends what runs.
    pub outcome: BoxFuture<'static, Result<Rendered, RenderError>>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Run").field("steer", &self.steer).finish_non_exhaustive()
    }
}

/// Steers a render with all that it has started and has yet to start. Called from the heartbeat's
/// thread: it must never block, needs no runtime, and may be called from any thread.
pub trait Steer: Send + Sync + std::fmt::Debug {
    /// Stops everything until [`thaw`](Self::thaw). Time and stall limits stand still.
    fn freeze(&self);
    /// Lets everything go on.
    fn thaw(&self);
    /// Ends everything, for good.
    fn kill(&self);
}
