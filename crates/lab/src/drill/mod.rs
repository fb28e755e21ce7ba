//! The drill: real processes, real signals, a network that holds back what it carries.
//!
//! Everything listens on loopback, and only what the drill started is ever signalled or ended.

mod clips;
mod cluster;
mod process;
mod proxy;

pub use clips::{Clip, make_clip};
pub use cluster::{Cluster, WorkerOptions};
pub use process::{Ended, Process};
pub use proxy::{Held, Proxy};

use std::time::Duration;

/// Something in a drill did not come to pass.
#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    /// A process or file of the drill's own failed.
    #[error("{doing}")]
    Io {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// A call to the server failed.
    #[error("a call to the server failed")]
    Call(#[from] palisade_api::ClientError),
    /// What was waited for did not happen.
    #[error("waited {} s for {what}; last seen: {seen}", waited.as_secs())]
    NotSeen {
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
        /// What was there instead.
        seen: String,
    },
    /// A tool that was run said no.
    #[error("{tool} failed: {message}")]
    Tool {
        /// The tool.
        tool: String,
        /// What it said.
        message: String,
    },
}

impl DrillError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}

/// Looks again and again until `look` answers `Ok`, at most for `limit`. The error tells what was
/// seen last.
pub async fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> Result<T, DrillError> {
    const PAUSE: Duration = Duration::from_millis(50);
    let mut waited = Duration::ZERO;
    loop {
        let seen = match look().await {
            Ok(found) => return Ok(found),
            Err(seen) => seen,
        };
        if waited >= limit {
            return Err(DrillError::NotSeen { what: what.to_owned(), waited, seen });
        }
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
    }
}
