//! Names from outside, checked once into types that cannot hold a bad one.

use serde::{Deserialize, Serialize};

use crate::{Invalid, limits};

/// Checks a name: 1 to `bytes_max` bytes of ASCII letters, digits, `.`, `_`, `-`, `:` and those in
/// `also`; not beginning with `.` or `-`; no part between slashes that is empty, begins with `.`
/// or is longer than a file's name can be.
pub(crate) fn checked_name(
    field: &str,
    text: &str,
    bytes_max: usize,
    also: &str,
) -> Result<String, Invalid> {
    let allowed = |ch: char| ch.is_ascii_alphanumeric() || "._-:".contains(ch) || also.contains(ch);
    let parts_fine = text.split('/').all(|part| {
        !part.is_empty() && !part.starts_with('.') && part.len() <= limits::FILE_NAME_BYTES_MAX
    });
    if text.len() <= bytes_max && text.chars().all(allowed) && parts_fine && !text.starts_with('-')
    {
        return Ok(text.to_owned());
    }
    let slash = if also.contains('/') {
        format!(
            ", parts between slashes 1 to {} bytes and not beginning with '.'",
            limits::FILE_NAME_BYTES_MAX
        )
    } else {
        String::new()
    };
    Err(Invalid::new(
        field,
        text,
        format!(
            "must be 1 to {bytes_max} letters, digits, '.', '_', '-', ':'{}{slash}, not beginning \
             with '.' or '-'",
            if also.is_empty() { String::new() } else { format!(" or any of {also:?}") },
        ),
    ))
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $field:literal, $bytes_max:expr, $also:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                checked_name($field, text, $bytes_max, $also).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;

            fn try_from(text: String) -> Result<Self, Invalid> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

name! {
    /// Whose job it is. Keys, request ids and caches do not reach across tenants.
    Tenant, "tenant", limits::NAME_BYTES_MAX, ""
}
name! {
    /// A worker as its operator calls it. Says nothing about identity: a session id does.
    WorkerName, "worker", limits::NAME_BYTES_MAX, ""
}
name! {
    /// A recipe in the operator's book (`h264-720p`).
    RecipeName, "recipe", limits::NAME_BYTES_MAX, ""
}
name! {
    /// An input that a recipe declares (`source`).
    InputName, "input", limits::NAME_BYTES_MAX, ""
}
name! {
    /// A parameter that a recipe declares (`crf`).
    ParameterName, "parameter", limits::NAME_BYTES_MAX, ""
}
name! {
    /// An output in a manifest: a file name, or a path below the manifest's folder
    /// (`segments/0001.ts`).
    OutputName, "output", limits::OUTPUT_NAME_BYTES_MAX, "/"
}

name! {
    /// A lock's name; may have parts between slashes (`exports/42`).
    LockName, "lock", limits::OUTPUT_NAME_BYTES_MAX, "/"
}
name! {
    /// Who holds or asks for a lock, as it calls itself. Says nothing about identity: the pair does.
    HolderName, "holder", limits::NAME_BYTES_MAX, "@"
}
name! {
    /// A fenced object's name; may have parts between slashes (`reports/2026/august.pdf`).
    ObjectKey, "key", limits::OBJECT_KEY_BYTES_MAX, "/@+=,"
}

impl ObjectKey {
    /// The names that this one lies under, the longest first: `a/b` and `a` of `a/b/c`.
    pub fn folders(&self) -> impl Iterator<Item = Self> {
        let ends = self.0.rmatch_indices('/').map(|(end, _)| end);
        // A name cut before a slash is a name.
        ends.map(|end| Self(self.0[..end].to_owned()))
    }
}

impl Tenant {
    /// The tenant of those who name none.
    pub fn default_tenant() -> Self {
        Self("default".to_owned())
    }
}

#[cfg(test)]
mod tests;
