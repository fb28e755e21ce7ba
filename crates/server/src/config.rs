//! Settings (numbers) and parts (what the server is built from).

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use palisade_artefacts::Blobs;
use palisade_core::{Digest, Retention, clock::Entropy, recipe::RecipeBook};
use palisade_store::Store;

use crate::collector::Collection;
use crate::webhooks::AllowedAddresses;

/// What a server is built from.
#[derive(Debug, Clone)]
pub struct ServerParts {
    /// The records, and the clock by which deadlines are counted.
    pub store: Arc<dyn Store>,
    /// The bytes.
    pub blobs: Arc<dyn Blobs>,
    /// What can be asked for.
    pub recipes: RecipeBook,
    /// Lease ids and jitter.
    pub entropy: Arc<dyn Entropy>,
}

/// Settings. The default listens on loopback, asks for no token, and suits production.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen. Port 0: any free one.
    pub listen: SocketAddr,
    /// Names under which the server may be addressed, beside loopback's and those of addresses.
    /// Asked for on loopback, and elsewhere once one is given.
    pub hosts: Vec<String>,
    /// Who may ask. None: everybody who reaches the port.
    pub tokens: Option<Tokens>,
    /// The longest JSON body, in bytes. A manifest of 20,000 outputs has about 6 MiB.
    pub json_bytes_max: usize,
    /// The longest blob, in bytes.
    pub blob_bytes_max: u64,
    /// How long a body may bring nothing before it is given up.
    pub body_stall: Duration,
    /// How long an input is kept that no job names.
    pub input_pin_ms: u64,
    /// How often a silent stream says something.
    pub ping_every: Duration,
    /// How long a session may be gone before its leases become claimable, in ms.
    pub suspect_after_ms: u64,
    /// How long after its start, or after a gap of its own, the server suspects nobody, in ms.
    pub quiet_ms: u64,
    /// How often it is looked whether a session has been gone for that long.
    pub look_every: Duration,
    /// How long the journal is kept. None: for ever.
    pub keep_history: Option<Retention>,
    /// How often it is looked whether anything may be forgotten.
    pub forget_every: Duration,
    /// How long running requests get when the server stops.
    pub stop_within: Duration,
    /// The most connections at once; more wait at the door.
    pub connections_max: usize,
    /// How long an address is good to which a download is sent on, where the blobs' backend signs
    /// such. None: everything is sent through the server.
    pub presign: Option<Duration>,
    /// Where workers find the blobs themselves. Given, they may bring blobs there without the
    /// server, and say so.
    pub artefacts: Option<String>,
    /// When what nobody keeps is cleared away.
    pub collection: Collection,
    /// Where notifications may go.
    pub webhook_addresses: AllowedAddresses,
    /// How long a try of a notification may take.
    pub webhook_within: Duration,
    /// How often progress is told to those who asked for it.
    pub progress_every: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            hosts: Vec::new(),
            tokens: None,
            json_bytes_max: 8 << 20,
            blob_bytes_max: 1 << 40,
            body_stall: Duration::from_mins(1),
            input_pin_ms: 24 * 60 * 60 * 1000,
            ping_every: Duration::from_secs(5),
            suspect_after_ms: 2_000,
            quiet_ms: palisade_core::limits::TTL_MS_DEFAULT / 10,
            look_every: Duration::from_millis(250),
            keep_history: Some(Retention::default()),
            forget_every: Duration::from_mins(1),
            stop_within: Duration::from_secs(10),
            connections_max: 20_000,
            presign: Some(Duration::from_mins(5)),
            artefacts: None,
            collection: Collection::default(),
            webhook_addresses: AllowedAddresses::default(),
            webhook_within: Duration::from_secs(15),
            progress_every: Duration::from_secs(2),
        }
    }
}

/// The bearer tokens that are let in. Only their digests are kept.
#[derive(Clone)]
pub struct Tokens(Vec<Digest>);

/// The tokens' file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// It cannot be read.
    #[error("cannot read the tokens in {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No token is there.
    #[error("{} has no tokens: there must be at least one, each on a line of its own", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A token could be guessed.
    #[error(
        "{}: line {line} is not allowed; a token is one line of at least {TOKEN_BYTES_MIN} \
         printable characters without blanks",
        path.display()
    )]
    Weak {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

/// Shortest token, in bytes.
const TOKEN_BYTES_MIN: usize = 16;

impl Tokens {
    /// Reads a file of tokens, one a line; empty lines and those that begin with `#` are skipped.
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokensError::Read { path: path.to_owned(), source })?;
        let weak = |line| TokensError::Weak { path: path.to_owned(), line };
        let mut digests = Vec::new();
        for (line, token) in (1..).zip(text.lines().map(str::trim)) {
            if token.is_empty() || token.starts_with('#') {
                continue;
            }
            if token.len() < TOKEN_BYTES_MIN || !token.bytes().all(|b| b.is_ascii_graphic()) {
                return Err(weak(line));
            }
            digests.push(Digest::of(token.as_bytes()));
        }
        if digests.is_empty() {
            return Err(TokensError::Missing { path: path.to_owned() });
        }
        Ok(Self(digests))
    }

    /// Whether the token is one of them. Takes as long for every token of a length, and what is
    /// compared are digests, so its time tells nothing of a token.
    pub(crate) fn allow(&self, token: &[u8]) -> bool {
        let shown = Digest::of(token);
        let differs = |known: &Digest| {
            known.as_bytes().iter().zip(shown.as_bytes()).fold(0, |all, (a, b)| all | (a ^ b))
        };
        self.0.iter().fold(false, |found, known| found | (differs(known) == 0))
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Tokens({})", self.0.len())
    }
}
