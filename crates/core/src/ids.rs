//! Identities: of jobs, leases, requests and sessions.

use serde::{Deserialize, Serialize};

use crate::{Invalid, Number, limits, names::checked_name};

/// A job, named after the number of the submission that created it: `j42`.
///
/// Invariant: never given to another job, because its number is never drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(pub Number);

impl std::str::FromStr for JobId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.strip_prefix('j')
            .and_then(|digits| digits.parse().ok())
            // No submission has the number zero.
            .filter(|number| *number != Number::ZERO)
            .map(JobId)
            .ok_or_else(|| Invalid::new("job", text, "must be a job's id such as \"j42\""))
    }
}

impl TryFrom<String> for JobId {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.to_string()
    }
}

impl std::fmt::Display for JobId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "j{}", self.0)
    }
}

/// A random 128-bit value that goes with a token: who holds the *pair* was granted it.
///
/// Written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LeaseId(pub u128);

impl std::str::FromStr for LeaseId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let well_formed =
            text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        well_formed
            .then(|| u128::from_str_radix(text, 16).ok())
            .flatten()
            .map(LeaseId)
            .ok_or_else(|| Invalid::new("lease", text, "must be 32 hexadecimal digits"))
    }
}

impl TryFrom<String> for LeaseId {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<LeaseId> for String {
    fn from(id: LeaseId) -> Self {
        id.to_string()
    }
}

impl std::fmt::Display for LeaseId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl std::fmt::Debug for LeaseId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "LeaseId({self})")
    }
}

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text as given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                checked_name($field, text, limits::REQUEST_ID_BYTES_MAX, "").map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;

            fn try_from(text: String) -> Result<Self, Invalid> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

opaque_id! {
    /// Names a request, so that the same request asked again gets its first answer.
    RequestId, "request_id"
}
opaque_id! {
    /// A random identity of one start of a worker. A worker that restarts under its old name has
    /// another session, and inherits no grant of the one before.
    SessionId, "session"
}

#[cfg(test)]
mod tests;
