//! The name of a register.

use palisade_core::{Invalid, OutputName};
use serde::{Deserialize, Serialize};

/// The name of a register: like an output's, letters, digits, `.`, `_`, `-`, `:`, with slashes
/// between parts, no part beginning with a dot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

/// What no key from outside can begin with, because a part must not begin with a dot.
pub(super) const PROBE_PREFIX: &str = ".probe";

impl Key {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key that the probe writes, and nobody else can name.
    pub(super) fn of_probe(nonce: u128, name: &str) -> Self {
        Self(format!("{PROBE_PREFIX}/{nonce:032x}/{name}"))
    }
}

impl std::str::FromStr for Key {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // One rule for names with slashes.
        match text.parse::<OutputName>() {
            Ok(name) => Ok(Self(name.into())),
            Err(error) => Err(Invalid { field: "key".to_owned(), ..error }),
        }
    }
}

impl TryFrom<String> for Key {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}
