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
    /// Not a PostgreSQL URL.
    #[error(
        "the store's URL {url:?} is not understood; it must be like postgres://user@host/database"
    )]
    Url {
        /// The URL, without its password.
        url: String,
        /// What is wrong with it.
        source: tokio_postgres::Error,
    },
    /// A parameter with a value that is not known.
    #[error("{name}={value} in the store's URL: must be {allowed}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
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
                    let value = value.to_owned();
                    let name = "target_session_attrs";
                    return Err(AddressError::Parameter { name, value, allowed: SESSIONS });
                }
                _ => kept.push(parameter.to_owned()),
            }
        }
        let plain = format!("{base}?{}", kept.join("&"));
        let mut config: tokio_postgres::Config = plain
            .parse()
            .map_err(|source| AddressError::Url { url: without_password(base), source })?;
        let (ssl, verify) = match mode.as_deref() {
            Some("disable") => (SslMode::Disable, Verify::Nothing),
            None | Some("prefer") => (SslMode::Prefer, Verify::Nothing),
            Some("require") if roots.is_none() => (SslMode::Require, Verify::Nothing),
            Some("require" | "verify-full") => (SslMode::Require, Verify::Full),
            Some(other) => {
                let (name, value) = ("sslmode", other.to_owned());
                return Err(AddressError::Parameter { name, value, allowed: MODES });
            }
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

    /// The database, for messages: no password is in it.
    pub fn shown(&self) -> String {
        let hosts: Vec<_> =
            self.config.get_hosts().iter().map(|host| format!("{host:?}")).collect();
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

/// A URL for messages.
fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (user, host))) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests;
