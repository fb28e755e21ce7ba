//! Where the database is: the URL, and how the way there is secured.

mod hosts;
mod tls;

use std::{path::PathBuf, time::Duration};

use tokio_postgres::{
    config::{Host, SslMode},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) use hosts::{Connector, PATIENCE, Purpose};

/// Why a URL was not understood, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// Not a PostgreSQL URL. Nothing of it is repeated: any part may be one of a password.
    #[error(
        "the store's address is not a URL; it must be like postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    NotUrl,
    /// A PostgreSQL URL that does not read as one. Nothing of it but the scheme is repeated, and
    /// not what the driver says either: it quotes.
    #[error(
        "the store's URL {scheme}://… is not understood; it must be like \
         {scheme}://USER:PASSWORD@HOST:PORT/DATABASE, and where a user's name or a password has one \
         of @ : / ? # % in it, that is written %40 %3A %2F %3F %23 %25"
    )]
    Url {
        /// How it begins.
        scheme: &'static str,
    },
    /// A parameter with a value that is not known.
    #[error("{name} in the store's URL: must be {allowed}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What it may be.
        allowed: &'static str,
    },
    /// Certificates that could not be read.
    #[error("the certificates to trust cannot be read from {from}")]
    Certificates {
        /// Where from.
        from: String,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// How much of the other side is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verify {
    /// Nothing: the way is encrypted, whoever is at its end.
    Nothing,
    /// Its certificate, and that it is this host's.
    Full,
}

/// Where the database is.
#[derive(Clone)]
pub struct Address {
    pub(super) config: tokio_postgres::Config,
    hosts: hosts::Hosts,
    tls: Tls,
}

/// How a connection is secured.
#[derive(Clone)]
pub(super) struct Tls(MakeRustlsConnect);

impl<S> MakeTlsConnect<S> for Tls
where
    MakeRustlsConnect: MakeTlsConnect<S>,
{
    type Stream = <MakeRustlsConnect as MakeTlsConnect<S>>::Stream;
    type TlsConnect = <MakeRustlsConnect as MakeTlsConnect<S>>::TlsConnect;
    type Error = <MakeRustlsConnect as MakeTlsConnect<S>>::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Self::TlsConnect, Self::Error> {
        // A socket of this machine has no name. The driver asks all the same, and uses it not.
        let domain = if domain.is_empty() { "localhost" } else { domain };
        MakeTlsConnect::<S>::make_tls_connect(&mut self.0, domain)
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration hides its password itself.
        formatter.debug_struct("Address").field("config", &self.config).finish_non_exhaustive()
    }
}

const MODES: &str = "one of disable, prefer, require, verify-full";
const SESSIONS: &str = "one of any, read-write, read-only";

impl Address {
    /// Reads a URL: `postgres://user@host:port/database?sslmode=verify-full`, or
    /// `postgres:///database?host=/folder/of/the/socket`.
    ///
    /// Several hosts are separated by commas, in either place; each connection goes to the first
    /// that takes writes, unless it is for reading alone and `target_session_attrs` says otherwise.
    ///
    /// Beside what the driver knows: `sslmode=verify-full` (the certificate and its name are
    /// verified; `require` encrypts alone, as everywhere with PostgreSQL) and `sslrootcert`, a
    /// file of certificates to trust instead of the machine's; with it, `require` verifies too.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let scheme = ["postgres", "postgresql"]
            .into_iter()
            .find(|scheme| url.strip_prefix(scheme).is_some_and(|rest| rest.starts_with("://")));
        let scheme = scheme.ok_or(AddressError::NotUrl)?;
        let not_understood = || AddressError::Url { scheme };
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut kept) = (None, None, Vec::<String>::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value.to_owned()),
                Some(("sslrootcert", value)) => roots = Some(PathBuf::from(value)),
                Some(("host", value)) => kept.extend(each_host(value)),
                Some(("target_session_attrs", value))
                    if !["any", "read-write", "read-only"].contains(&value) =>
                {
                    let name = "target_session_attrs";
                    return Err(AddressError::Parameter { name, allowed: SESSIONS });
                }
                _ => kept.push(parameter.to_owned()),
            }
        }
        // The driver takes all before any `@`, in the query too, for user and password.
        let plain = format!("{base}?{}", kept.join("&").replace('@', "%40"));
        let mut config: tokio_postgres::Config = plain.parse().map_err(|_| not_understood())?;
        // User and password end at the first `@`, and what is behind it goes into messages. A second
        // one is most likely in a password that was not escaped.
        let has_at = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        if base.matches('@').count() > 1 || config.get_hosts().iter().any(has_at) {
            return Err(not_understood());
        }
        let (ssl, verify) = match mode.as_deref() {
            Some("disable") => (SslMode::Disable, Verify::Nothing),
            None | Some("prefer") => (SslMode::Prefer, Verify::Nothing),
            Some("require") if roots.is_none() => (SslMode::Require, Verify::Nothing),
            Some("require" | "verify-full") => (SslMode::Require, Verify::Full),
            Some(_) => return Err(AddressError::Parameter { name: "sslmode", allowed: MODES }),
        };
        // What leaves this machine is encrypted; a socket's folder has rights of its own.
        let local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        settle(&mut config, if local { SslMode::Disable } else { ssl });
        let tls = match verify {
            Verify::Nothing => tls::encrypted(),
            Verify::Full => tls::verified(roots.as_deref())?,
        };
        let hosts = hosts::Hosts::of(&config)?;
        Ok(Self { config, hosts, tls: Tls(MakeRustlsConnect::new(tls)) })
    }

    pub(super) fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// How long a connection may take in all, beyond what it takes to one host.
    pub(super) fn more_time(&self) -> Duration {
        self.hosts.more_time()
    }

    /// The database, for messages: no user and no password is in it.
    pub fn shown(&self) -> String {
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let hosts = self.config.get_hosts().iter().enumerate().map(|(at, host)| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(at)),
            Host::Tcp(name) => format!("{name}:{}", port(at)),
            Host::Unix(folder) => format!("the socket in {}", folder.display()),
        });
        let hosts: Vec<_> = hosts.collect();
        let name = self.config.get_dbname().unwrap_or("(its user's)");
        format!("{name} at {}", hosts.join(", "))
    }
}

/// What is so for each connection, to whichever host.
fn settle(config: &mut tokio_postgres::Config, ssl: SslMode) {
    config
        .ssl_mode(ssl)
        .application_name("palisade")
        .connect_timeout(PATIENCE)
        // A host that vanished is noticed, whichever side is talking.
        .tcp_user_timeout(Duration::from_secs(10))
        .keepalives_idle(Duration::from_secs(10))
        .keepalives_interval(Duration::from_secs(3))
        .keepalives_retries(3);
}

/// The driver takes one host from a parameter, where PostgreSQL's own clients take several.
fn each_host(value: &str) -> Vec<String> {
    let value = value.replace("%2C", ",").replace("%2c", ",");
    value.split(',').map(|host| format!("host={host}")).collect()
}

/// Where PostgreSQL listens, where nothing else is said.
const PORT: u16 = 5432;

#[cfg(test)]
mod tests;
