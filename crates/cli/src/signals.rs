//! Being asked to end.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// `SIGTERM` and `SIGINT`, as often as they come.
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    /// Listens from now on.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits until this process is asked to end.
pub(crate) async fn asked_to_end() -> anyhow::Result<()> {
    EndSignals::listen()?.next().await;
    Ok(())
}
