//! The road between a worker and its server: a forwarder on loopback that can be cut, or hold
//! what is on it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// How the road is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Road {
    /// Everything passes.
    Open,
    /// Nothing passes, and connections break.
    Cut,
    /// Nothing passes for now: what is on it arrives later.
    Held,
    /// Everything passes, until a completion comes by: it and all after it are held.
    HoldCompletion,
}

/// A forwarder.
pub(crate) struct Forwarder {
    pub(crate) address: SocketAddr,
    road: Arc<watch::Sender<Road>>,
}

impl Forwarder {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let road = Arc::new(watch::Sender::new(Road::Open));
        let shared = Arc::clone(&road);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *shared.borrow() != Road::Cut {
                    tokio::spawn(forward(client, server, Arc::clone(&shared)));
                }
            }
        });
        Self { address, road }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn set(&self, road: Road) {
        self.road.send_replace(road);
    }

    /// Returns once it is like that.
    pub(crate) async fn until(&self, road: Road) {
        let mut changes = self.road.subscribe();
        changes.wait_for(|now| *now == road).await.expect("it lives");
    }
}

async fn forward(client: TcpStream, server: SocketAddr, road: Arc<watch::Sender<Road>>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let mut changes = road.subscribe();
    tokio::select! {
        () = pass(client_reads, server_writes, &road) => {}
        () = pass(server_reads, client_writes, &road) => {}
        _ = changes.wait_for(|now| *now == Road::Cut) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, road: &watch::Sender<Road>) {
    let mut buffer = vec![0; 64 * 1024];
    let mut changes = road.subscribe();
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let chunk = &buffer[..read];
        if chunk.windows(10).any(|bytes| bytes == b"/complete ") {
            road.send_if_modified(|now| {
                let hold = *now == Road::HoldCompletion;
                if hold {
                    *now = Road::Held;
                }
                hold
            });
        }
        let passable = changes.wait_for(|now| matches!(now, Road::Open | Road::HoldCompletion));
        if passable.await.is_err() || to.write_all(chunk).await.is_err() {
            return;
        }
    }
}
