//! Which build of a tool is here.

use palisade_core::Digest;

/// The exact build of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolIdentity {
    /// The tool (`ffmpeg`).
    pub name: String,
    /// Its version (`5.1.9-0+deb12u1`): what a recipe's pin is compared with.
    pub version: String,
    /// The first line that it says of itself.
    pub line: String,
    /// Of all that it says of itself: how it was configured, and its libraries' versions.
    pub digest: Digest,
}

/// Asks a tool for its version.
pub(crate) fn version_argv(name: &str) -> Vec<String> {
    // ffmpeg and ffprobe know one dash only.
    let option = if name.starts_with("ff") { "-version" } else { "--version" };
    vec![name.to_owned(), option.to_owned()]
}

impl ToolIdentity {
    /// Reads what a tool says of itself.
    pub(crate) fn parse(name: &str, said: &str) -> Option<Self> {
        let line = said.lines().find(|line| !line.trim().is_empty())?.trim().to_owned();
        let words = || line.split_ascii_whitespace();
        let after = words().skip_while(|word| !word.eq_ignore_ascii_case("version")).nth(1);
        let numbered = || words().find(|word| word.starts_with(|ch: char| ch.is_ascii_digit()));
        let version = after.or_else(numbered)?.to_owned();
        let digest = Digest::of(said.as_bytes());
        Some(Self { name: name.to_owned(), version, line, digest })
    }
}

impl std::fmt::Display for ToolIdentity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} (build {})", self.line, self.digest)
    }
}
