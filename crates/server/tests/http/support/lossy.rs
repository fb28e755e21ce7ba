//! A network that loses the replies to some requests: the request arrives, the answer does not.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A proxy that loses every second reply to requests whose head has these words.
pub(crate) struct Lossy {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    asked: AtomicUsize,
    lost: AtomicUsize,
}

impl Lossy {
    pub(crate) async fn before(server: SocketAddr, words: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::<Counts>::default();
        let shared = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let counts = Arc::clone(&shared);
                tokio::spawn(async move {
                    let server = TcpStream::connect(server).await.unwrap();
                    // It ends with either side, and when it has lost something.
                    let _ended = pass(client, server, words, &counts).await;
                });
            }
        });
        Self { address, counts }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many replies were lost.
    pub(crate) fn lost(&self) -> usize {
        self.counts.lost.load(Ordering::SeqCst)
    }
}

/// Passes requests and answers on, each small enough to come in one piece.
async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    words: &str,
    counts: &Counts,
) -> std::io::Result<()> {
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut loses = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let piece = &asked[..read?];
                if piece.is_empty() {
                    return Ok(());
                }
                if String::from_utf8_lossy(piece).contains(words) {
                    loses = counts.asked.fetch_add(1, Ordering::SeqCst) % 2 == 1;
                }
                server.write_all(piece).await?;
            }
            read = server.read(&mut answered) => {
                let piece = &answered[..read?];
                if piece.is_empty() {
                    return Ok(());
                }
                if loses {
                    counts.lost.fetch_add(1, Ordering::SeqCst);
                    return Ok(());
                }
                client.write_all(piece).await?;
            }
        }
    }
}
