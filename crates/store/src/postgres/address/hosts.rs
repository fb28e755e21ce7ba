//! The way to one of several hosts. Each is asked in turn and given a time of its own, so that one
//! that takes the connection and says nothing, as a stopped machine does, does not hide those
//! after it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use deadpool_postgres::Connect;
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_postgres::{
    Client, Config, Connection, Error, SimpleQueryMessage, Socket, config::TargetSessionAttrs,
    tls::MakeTlsConnect,
};

use super::{Address, AddressError, Tls};

/// How long one of several hosts is waited for.
pub(in crate::postgres) const PATIENCE: Duration = Duration::from_secs(5);
/// Said by a standby, and by a primary that was set to be read-only.
const READ_ONLY: &str = "SHOW transaction_read_only";

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum Purpose {
    /// To write: of several hosts, the one that takes writes.
    Write,
    /// To read alone: whichever the address asks for, or the first.
    Read,
}

/// A connection, and what drives it.
pub(in crate::postgres) type Way =
    (Client, Connection<Socket, <Tls as MakeTlsConnect<Socket>>::Stream>);

/// The hosts of an address, in its order.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    each: Vec<Config>,
    /// The one that was good last is asked first: after a fail-over nobody waits for the lost one
    /// again and again.
    good: Arc<AtomicUsize>,
}

impl Hosts {
    /// Takes a configuration apart.
    pub(super) fn of(config: &Config) -> Result<Self, AddressError> {
        let (names, numbers, ports) =
            (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
        let count = names.len().max(numbers.len());
        let fits = |given: usize| given == 0 || given == count;
        let wrong = |name, allowed| Err(AddressError::Parameter { name, allowed });
        if !fits(names.len()) || !fits(numbers.len()) {
            return wrong("hostaddr", "one for each host");
        }
        if ports.len() > 1 && !fits(ports.len()) {
            return wrong("port", "one, or one for each host");
        }
        // Alone, or none at all: the driver says what it thinks of that.
        if count < 2 {
            return Ok(Self { each: vec![config.clone()], good: Arc::default() });
        }
        let each = (0..count).map(|index| alone(config, index)).collect();
        Ok(Self { each, good: Arc::default() })
    }

    /// The configuration of each.
    #[cfg(test)]
    pub(super) fn each(&self) -> &[Config] {
        &self.each
    }

    /// How long all of them together may take, beyond what one may.
    pub(super) fn more_time(&self) -> Duration {
        PATIENCE * u32::try_from(self.each.len() - 1).unwrap_or(u32::MAX)
    }
}

/// The configuration with one of its hosts.
fn alone(config: &Config, index: usize) -> Config {
    use tokio_postgres::config::Host;
    let mut one = Config::new();
    match config.get_hosts().get(index) {
        Some(Host::Tcp(name)) => _ = one.host(name),
        Some(Host::Unix(folder)) => _ = one.host_path(folder),
        None => {}
    }
    if let Some(number) = config.get_hostaddrs().get(index) {
        one.hostaddr(*number);
    }
    if let Some(port) = config.get_ports().get(index).or_else(|| config.get_ports().first()) {
        one.port(*port);
    }
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(database) = config.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    one.ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs());
    super::settle(&mut one, config.get_ssl_mode());
    one
}

impl Address {
    /// Connects to the first host that serves the purpose. Where none takes writes, it is one that
    /// does not: whoever uses it finds that out, and can say so.
    pub(in crate::postgres) async fn connect(&self, purpose: Purpose) -> Result<Way, Error> {
        let each = &self.hosts.each;
        if let [only] = each.as_slice() {
            return prepared(only, purpose).connect(self.tls()).await;
        }
        let first = self.hosts.good.load(Ordering::Relaxed);
        loop {
            let (mut read_only, mut failed) = (None, None);
            for index in (0..each.len()).map(|step| (first + step) % each.len()) {
                let reach = reach(&each[index], purpose, self.tls());
                match tokio::time::timeout(PATIENCE, reach).await {
                    Ok(Ok(Some((way, true)))) => {
                        self.hosts.good.store(index, Ordering::Relaxed);
                        return Ok(way);
                    }
                    Ok(Ok(Some((way, false)))) => read_only = read_only.or(Some(way)),
                    Ok(Err(error)) => failed = Some(worse(failed, error)),
                    Ok(Ok(None)) | Err(_) => {
                        tracing::warn!(host = index + 1, "a database host does not answer");
                    }
                }
            }
            match (read_only, failed) {
                (Some(way), _) => return Ok(way),
                (None, Some(error)) => return Err(error),
                // Nobody said anything: once more, for as long as whoever waits here does.
                (None, None) => {}
            }
        }
    }
}

/// The error to tell of two: what a database said is worth more than that none was there.
fn worse(before: Option<Error>, now: Error) -> Error {
    match before {
        Some(before) if before.as_db_error().is_some() && now.as_db_error().is_none() => before,
        _ => now,
    }
}

fn prepared(host: &Config, purpose: Purpose) -> Config {
    let mut host = host.clone();
    // Looked at below and by whoever writes, who can say what is the matter.
    if purpose == Purpose::Write && host.get_target_session_attrs() == TargetSessionAttrs::ReadWrite
    {
        host.target_session_attrs(TargetSessionAttrs::Any);
    }
    host
}

/// A connection to this host, and whether it serves the purpose; none where it was ended at once.
async fn reach(host: &Config, purpose: Purpose, tls: Tls) -> Result<Option<(Way, bool)>, Error> {
    let (client, mut connection) = prepared(host, purpose).connect(tls).await?;
    if purpose == Purpose::Read {
        return Ok(Some(((client, connection), true)));
    }
    let said = tokio::select! {
        said = client.simple_query(READ_ONLY) => said?,
        ended = &mut connection => return ended.map(|()| None),
    };
    let writes = said.iter().any(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0) == Some("off"),
        _ => false,
    });
    Ok(Some(((client, connection), writes)))
}

/// How a pool connects.
pub(in crate::postgres) struct Connector {
    pub(in crate::postgres) address: Address,
    pub(in crate::postgres) purpose: Purpose,
}

impl Connect for Connector {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(async {
            let (client, connection) = self.address.connect(self.purpose).await?;
            let driver = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::warn!(%error, "a connection to the database broke");
                }
            });
            Ok((client, driver))
        })
    }
}
