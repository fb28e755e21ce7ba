//! Where a blob is, and which part of it is wanted.

use palisade_core::{Digest, Invalid, Number};

/// One blob's place: its digest, and the generation that the store drew for this upload of it.
///
/// Invariant: a place, once condemned, is never named again. A deletion that comes late therefore
/// takes away only what nobody will ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// BLAKE3 of the bytes.
    pub digest: Digest,
    /// Drawn from the store-wide counter when the upload began.
    pub generation: Number,
}

impl Place {
    /// The place of `generation` of the blob named `digest`.
    pub const fn new(digest: Digest, generation: Number) -> Self {
        Self { digest, generation }
    }
}

/// Written `digest/generation`.
impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.digest, self.generation)
    }
}

impl std::str::FromStr for Place {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (digest, generation) = text
            .split_once('/')
            .ok_or_else(|| Invalid::new("place", text, "must be digest/generation"))?;
        let digest = digest.parse().map_err(|error: Invalid| error.under("place"))?;
        // One spelling per place: a file `….007` is not generation 7.
        let canonical = generation == "0" || !generation.starts_with(['0', '+']);
        let generation =
            generation.parse().ok().filter(|_| canonical).ok_or_else(|| {
                Invalid::new("place.generation", generation, "must be below 2^53")
            })?;
        Ok(Self { digest, generation })
    }
}

/// A part of a blob, in bytes: from `start` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte wanted.
    pub start: u64,
    /// The byte after the last one wanted; none: to the end. Beyond the end is cut to it.
    pub end: Option<u64>,
}

impl ByteRange {
    /// The whole blob. Only this is checked against the digest.
    pub const FULL: Self = Self { start: 0, end: None };

    /// From `start` up to, not including, `end`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end: Some(end) }
    }

    /// From `start` to the end.
    pub const fn from(start: u64) -> Self {
        Self { start, end: None }
    }

    /// The bytes that this names in a blob of `size` bytes; none when it names no byte of it. Of
    /// an empty blob the whole is still a range.
    pub fn within(self, size: u64) -> Option<std::ops::Range<u64>> {
        let end = self.end.unwrap_or(size).min(size);
        let whole = self.start == 0 && self.end.is_none();
        (whole || self.start < end).then_some(self.start..end)
    }
}
