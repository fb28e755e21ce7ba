//! The heartbeat: one thread with a runtime and connections of its own, which renders, logs and a
//! blocked main runtime cannot starve.
//!
//! It alone ticks the keepers and carries out what they say. It never waits for anything that
//! the rest of the worker does: no log, no full pipe, no lock that is held across a wait.

mod beats;
mod session;

use std::{io, sync::Arc, thread::JoinHandle};

use tokio::sync::watch;

use crate::{control_plane::Connector, desk::Desk};

/// The thread's name, as `ps` and debuggers show it.
pub(crate) const THREAD_NAME: &str = "pal-heartbeat";

/// The running thread. Dropped, it is told to end, and is not waited for.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Starts the thread.
    pub(crate) fn start(desk: Arc<Desk>, connector: Arc<dyn Connector>) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(move || {
            runtime.block_on(async {
                let session = session::watch(Arc::clone(&desk), Arc::clone(&connector));
                // On the same runtime, as a task of its own; it ends with the runtime.
                let session = tokio::spawn(session);
                beats::run(&desk, &*connector, stopped).await;
                session.abort();
            });
            // A name lookup that hangs must not keep the process.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Sends what the server must still hear, for a moment at most, and ends the thread.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        let Some(thread) = self.thread.take() else { return };
        // Joining blocks, so it is done where that is allowed.
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the heartbeat's thread ended with a panic");
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}
