//! What came of a rendering: its outputs, what was verified of them, and what made them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Digest, Invalid, OutputName, limits};

/// One output file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its name in the manifest; may have folders (`segments/0001.ts`).
    pub name: OutputName,
    /// Its bytes.
    pub digest: Digest,
    /// Its length.
    pub size_bytes: u64,
    /// Its media type (`video/mp4`).
    pub media_type: String,
    /// What was measured of it: `duration_s`, `width`, `height`, `video_codec`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, serde_json::Value>,
}

/// One thing that was verified before the commit, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at (`duration`, `streams`, `not_empty`).
    pub name: String,
    /// What was expected, in words.
    pub expected: String,
    /// What was found, in words.
    pub found: String,
}

/// What made the outputs, so that each can be traced to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// The tool's exact build (`ffmpeg version 5.1.9-0+deb12u1 …`, with its configuration).
    pub toolchain: String,
    /// The command lines that ran, in order, one argv each.
    pub commands: Vec<Vec<String>>,
}

/// The list of a job's outputs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// The outputs, in the order of their names.
    pub outputs: Vec<Output>,
    /// What was verified.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// What made them.
    #[serde(default)]
    pub provenance: Provenance,
}

impl Manifest {
    /// Checks what a manifest from outside must be: not empty, not too long, no name twice, and
    /// no file where another output's folder is.
    pub fn validate(&self) -> Result<(), Invalid> {
        let count = self.outputs.len();
        if count == 0 || count > limits::MANIFEST_OUTPUTS_MAX {
            let allowed = format!("must list 1 to {} outputs", limits::MANIFEST_OUTPUTS_MAX);
            return Err(Invalid::new("manifest.outputs", &count.to_string(), allowed));
        }
        let mut names = BTreeSet::new();
        for output in &self.outputs {
            if !names.insert(output.name.as_str()) {
                let allowed = "must name each output once";
                return Err(Invalid::new("manifest.outputs", output.name.as_str(), allowed));
            }
        }
        let mut folders = names.iter().flat_map(|name| folders_of(name));
        match folders.find(|folder| names.contains(folder)) {
            None => Ok(()),
            Some(folder) => {
                let allowed = "must not name a file as it names another's folder";
                Err(Invalid::new("manifest.outputs", folder, allowed))
            }
        }
    }

    /// Whether another manifest names the same bytes under the same names.
    pub fn same_outputs(&self, other: &Self) -> bool {
        let essence = |manifest: &Self| {
            let mut list: Vec<_> =
                manifest.outputs.iter().map(|o| (o.name.clone(), o.digest)).collect();
            list.sort();
            list
        };
        essence(self) == essence(other)
    }
}

/// The folders that a path lies in: `a/b/c` lies in `a` and `a/b`.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

#[cfg(test)]
mod tests;
