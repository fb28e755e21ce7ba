//! A network between a worker and its server that can hold back what it carries.
//!
//! It makes the worst moment of a paused process exact: the request has left the worker after its
//! last look at its lease, and arrives long after the lease has gone to another.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, watch},
};

use super::DrillError;

/// A proxy on loopback.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    rules: Arc<Rules>,
    accept: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Rules {
    server: SocketAddr,
    /// Requests that contain this are held.
    hold: Option<Vec<u8>>,
    held: Notify,
    was_held: AtomicBool,
    released: watch::Sender<bool>,
    cut: watch::Sender<bool>,
}

/// A request that is being held back.
#[derive(Debug)]
pub struct Held<'proxy>(&'proxy Proxy);

impl Proxy {
    /// Listens on a free port and carries to `server`. Requests that contain `hold` (`"/complete
    /// HTTP/1.1"`) are held until they are let go.
    pub async fn start(server: SocketAddr, hold: Option<&str>) -> Result<Self, DrillError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.map_err(DrillError::io("cannot listen on loopback"))?;
        let address = listener.local_addr().map_err(DrillError::io("cannot listen"))?;
        let rules = Arc::new(Rules {
            server,
            hold: hold.map(|text| text.as_bytes().to_vec()),
            held: Notify::new(),
            was_held: AtomicBool::new(false),
            released: watch::Sender::new(false),
            cut: watch::Sender::new(false),
        });
        let accept = tokio::spawn(accept(listener, Arc::clone(&rules)));
        Ok(Self { address, rules, accept })
    }

    /// Where the worker is to connect to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until a request is being held.
    pub async fn held(&self) -> Held<'_> {
        loop {
            let told = self.rules.held.notified();
            if self.rules.was_held.load(Ordering::SeqCst) {
                return Held(self);
            }
            told.await;
        }
    }

    /// Cuts the network: every connection breaks, and new ones break at once.
    pub fn cut(&self) {
        self.rules.cut.send_replace(true);
    }

    /// Mends the network.
    pub fn mend(&self) {
        self.rules.cut.send_replace(false);
    }
}

impl Held<'_> {
    /// Lets the request go on, and every later one.
    pub fn let_go(self) {
        self.0.rules.released.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accept.abort();
        self.rules.cut.send_replace(true);
    }
}

async fn accept(listener: TcpListener, rules: Arc<Rules>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(carry(client, Arc::clone(&rules)));
    }
}

async fn carry(client: TcpStream, rules: Arc<Rules>) {
    let mut cut = rules.cut.subscribe();
    if *cut.borrow() {
        return;
    }
    let Ok(server) = TcpStream::connect(rules.server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let back = tokio::spawn(copy(from_server, to_client));
    let forth = requests(from_client, to_server, &rules);
    tokio::select! {
        biased;
        _ = cut.wait_for(|cut| *cut) => {}
        () = forth => {}
    }
    back.abort();
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    // A broken connection ends the copy: that is what a network does.
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, rules: &Rules) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let bytes = &buffer[..read];
        if rules.hold.as_deref().is_some_and(|hold| contains(bytes, hold)) {
            rules.was_held.store(true, Ordering::SeqCst);
            rules.held.notify_waiters();
            let mut released = rules.released.subscribe();
            if released.wait_for(|released| *released).await.is_err() {
                return;
            }
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
