//! What is to be rendered, and the key under which the same rendering is recognised.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, InputName, ParameterName, RecipeName};

/// One input of a job: immutable bytes, and what the customer calls them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputRef {
    /// The bytes.
    pub digest: Digest,
    /// Their length.
    pub size_bytes: u64,
    /// The customer's file name, for people alone. It never reaches a command line, and is no
    /// part of the key: the same bytes under another name are the same rendering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A rendering: recipe, inputs, parameters.
///
/// Invariant: `parameters` are complete (defaults filled in) and in the recipe's canonical text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The recipe's name.
    pub recipe: RecipeName,
    /// The digest of the recipe's canonical definition: another definition is another rendering.
    pub definition: Digest,
    /// Inputs by the name that the recipe declares.
    pub inputs: BTreeMap<InputName, InputRef>,
    /// Parameters by name.
    pub parameters: BTreeMap<ParameterName, String>,
}

/// The key of a job within its tenant: same key = same rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobKey(pub Digest);

impl std::fmt::Display for JobKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The canonical form, in the order of its members. See [`Spec::canonical`].
#[derive(Serialize)]
struct Canonical<'a> {
    definition: Digest,
    inputs: BTreeMap<&'a str, Digest>,
    parameters: BTreeMap<&'a str, &'a str>,
    recipe: &'a str,
    version: &'static str,
}

impl Spec {
    /// The canonical form, for other implementations to compute the same key: one JSON object,
    /// UTF-8, no white space, members sorted by their names' bytes, every value a string or an
    /// object of strings:
    ///
    /// ```json
    /// {"definition":"<64 hex>","inputs":{"source":"<64 hex>"},
    ///  "parameters":{"crf":"23"},"recipe":"h264-720p","version":"1"}
    /// ```
    ///
    /// Strings escape `"`, `\` and the control characters below U+0020 (`\b \t \n \f \r`, else
    /// `\u00xx` in lower case) and nothing else, as RFC 8785 does.
    pub fn canonical(&self) -> Vec<u8> {
        let canonical = Canonical {
            definition: self.definition,
            inputs: self.inputs.iter().map(|(name, input)| (name.as_str(), input.digest)).collect(),
            parameters: self
                .parameters
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect(),
            recipe: self.recipe.as_str(),
            version: "1",
        };
        serde_json::to_vec(&canonical).expect("strings always serialise")
    }

    /// BLAKE3 of the canonical form.
    pub fn key(&self) -> JobKey {
        JobKey(Digest::of(&self.canonical()))
    }
}

#[cfg(test)]
mod tests;
