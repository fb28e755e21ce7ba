//! A server that runs: started, and stopped politely.

use std::{net::SocketAddr, time::Duration};

use palisade_store::query::Query;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

use crate::{
    accept,
    app::App,
    collector,
    config::{ServerConfig, ServerParts},
    dispatch::{self, Returned},
    publisher, router, webhooks,
};

/// How long the last grants that nobody took have for their way back, when the server stops.
const HAND_BACK_WITHIN: Duration = Duration::from_secs(2);

/// The server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is in use, or not this machine's.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The store does not answer.
    #[error("the store does not answer")]
    Store(#[source] palisade_store::Failure),
}

/// A running server. Dropped without [`Server::stop`], it ends at once, as in a crash.
#[derive(Debug)]
pub struct Server {
    app: App,
    address: SocketAddr,
    serving: JoinHandle<()>,
    handing_back: JoinHandle<()>,
    delivering: JoinHandle<()>,
    beside: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts: listens, and serves from when this answers.
    pub async fn start(config: ServerConfig, parts: ServerParts) -> Result<Self, StartError> {
        let listen = config.listen;
        let failed = |source| StartError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let changes = parts.store.changes();
        parts.store.query(Query::Counts).await.map_err(StartError::Store)?;
        let (orphans, returned) = mpsc::unbounded_channel();
        let app = App::new(config, parts, orphans);
        dispatch::learn_holders(&app).await;
        let beside = vec![
            tokio::spawn(dispatch::tell_news(app.clone(), changes)),
            tokio::spawn(dispatch::keep_time(app.clone())),
            tokio::spawn(dispatch::suspect(app.clone())),
            tokio::spawn(collector::keep_collecting(app.clone())),
            tokio::spawn(webhooks::tell_progress(app.clone())),
            tokio::spawn(dispatch::forget(app.clone())),
            tokio::spawn(publisher::publish(app.clone())),
        ];
        let handing_back = tokio::spawn(dispatch::hand_back(app.clone(), returned));
        let delivering = tokio::spawn(webhooks::deliver(app.clone()));
        let serving = tokio::spawn(accept::serve(
            listener,
            router::router(app.clone()),
            app.config.connections_max,
            app.stopping.clone(),
        ));
        tracing::info!(%address, "serving");
        Ok(Self { app, address, serving, handing_back, delivering, beside })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address as a client names it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops: takes no more connections, ends those that wait with 503 `unavailable` and the
    /// streams with their end, lets running requests finish within the time that the settings
    /// give them. Answers whether all of them did.
    pub async fn stop(mut self) -> bool {
        self.app.stopping.cancel();
        let within = self.app.config.stop_within;
        let finished = tokio::time::timeout(within, &mut self.serving).await.is_ok();
        if !finished {
            tracing::warn!("requests were still running when the time to stop was over");
        }
        // Grants whose claimers left meanwhile are given back while there is a server to do it.
        let _ = self.app.orphans.send(Returned::End);
        let _ = tokio::time::timeout(HAND_BACK_WITHIN, &mut self.handing_back).await;
        // What is cut off here is delivered again by whoever opens the store next.
        let _ = tokio::time::timeout(HAND_BACK_WITHIN, &mut self.delivering).await;
        self.delivering.abort();
        // Whoever opens the same store next finds it free.
        for task in &mut self.beside {
            task.abort();
            let _ = task.await;
        }
        tracing::info!(address = %self.address, "stopped");
        finished
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.app.stopping.cancel();
        self.serving.abort();
        self.handing_back.abort();
        self.delivering.abort();
        self.beside.iter().for_each(JoinHandle::abort);
    }
}
