//! Endpoints: who wants to be told of what, and the secrets that sign it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Refusal, Tenant, Timestamp};

use super::EventType;

/// Most endpoints of a store: every move of a job looks at all of them.
pub const ENDPOINTS_MAX: usize = 1_000;
/// Longest address of an endpoint, in bytes.
pub const URL_BYTES_MAX: usize = 2_000;

/// An endpoint's id: random, so that the ids of what it is sent are its own, whichever store
/// they come from. Written `wh_` and 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EndpointId(pub u64);

impl EndpointId {
    /// The digits alone.
    pub(super) fn from_digits(digits: &str) -> Option<Self> {
        let plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let well_formed = digits.len() == 16 && digits.bytes().all(plain);
        well_formed.then(|| u64::from_str_radix(digits, 16).ok()).flatten().map(Self)
    }
}

impl std::str::FromStr for EndpointId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.strip_prefix("wh_").and_then(Self::from_digits).ok_or_else(|| {
            Invalid::new("webhook", text, "must be \"wh_\" and 16 hexadecimal digits")
        })
    }
}

impl TryFrom<String> for EndpointId {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<EndpointId> for String {
    fn from(id: EndpointId) -> Self {
        id.to_string()
    }
}

impl std::fmt::Display for EndpointId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "wh_{:016x}", self.0)
    }
}

/// What signs an endpoint's notifications: 32 random bytes. Never shown by `Debug`.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A secret of these bytes, which nobody can guess.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Where notifications go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its id.
    pub id: EndpointId,
    /// Whose jobs it is told of.
    pub tenant: Tenant,
    /// Its address. At most one endpoint of a tenant has it.
    pub url: String,
    /// What it is told of. Invariant: not empty.
    pub events: BTreeSet<EventType>,
    /// What signs.
    pub secret: Secret,
    /// What signs beside it, for a while after a rotation.
    pub previous: Option<Previous>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A secret on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// The secret.
    pub secret: Secret,
    /// Up to when it signs.
    pub until: Timestamp,
}

impl Endpoint {
    /// Whether it is told of this event of this tenant's jobs.
    pub fn wants(&self, tenant: &Tenant, event: EventType) -> bool {
        self.events.contains(&event) && self.tenant == *tenant
    }

    /// What signs now, the newest first.
    pub fn secrets(&self, now: Timestamp) -> Vec<Secret> {
        let previous = self.previous.filter(|previous| now < previous.until);
        std::iter::once(self.secret).chain(previous.map(|previous| previous.secret)).collect()
    }
}

/// Takes an endpoint in, beside those there are.
pub fn create(there: &[Endpoint], endpoint: Endpoint) -> Result<Endpoint, Refusal> {
    checked_url(&endpoint.url)?;
    if endpoint.events.is_empty() {
        let allowed = format!("must be one or more of {}", EventType::words());
        return Err(Invalid::new("events", "", allowed).into());
    }
    let same = |other: &&Endpoint| other.url == endpoint.url && other.tenant == endpoint.tenant;
    if let Some(other) = there.iter().find(same) {
        // A second one would tell the same receiver everything twice, under other ids.
        let allowed = format!("is webhook {} already; rotate its secret, or remove it", other.id);
        return Err(Invalid::new("url", &endpoint.url, allowed).into());
    }
    if there.len() >= ENDPOINTS_MAX {
        let allowed = format!("must be one of at most {ENDPOINTS_MAX} webhooks; remove another");
        return Err(Invalid::new("url", &endpoint.url, allowed).into());
    }
    Ok(endpoint)
}

/// Signs with another secret from now on, and with the one before it for `keep_ms` more.
pub fn rotate(endpoint: Endpoint, secret: Secret, keep_ms: u64, now: Timestamp) -> Endpoint {
    let previous = Previous { secret: endpoint.secret, until: now.plus_ms(keep_ms) };
    Endpoint { secret, previous: Some(previous).filter(|kept| kept.until > now), ..endpoint }
}

/// Checks an address as far as that can be done without looking anything up.
pub fn checked_url(url: &str) -> Result<(), Invalid> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    let plain = url.len() <= URL_BYTES_MAX && url.bytes().all(|byte| byte.is_ascii_graphic());
    let fine = plain
        && !url.contains(['#', '\\'])
        && authority.is_some_and(|authority| !authority.is_empty() && !authority.contains('@'));
    if fine {
        return Ok(());
    }
    let allowed = format!(
        "must be an http:// or https:// address of at most {URL_BYTES_MAX} ASCII characters, \
         without user, password or fragment"
    );
    Err(Invalid::new("url", url, allowed))
}
