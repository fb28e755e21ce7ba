//! Which bytes of a file a request wants (RFC 9110): whole, a part, or nothing new. Pure.

use axum::{
    body::Bytes,
    http::{HeaderMap, header},
};
use palisade_artefacts::ByteRange;

/// What to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The whole file.
    Whole,
    /// These bytes of it: from, up to and not including.
    Part(u64, u64),
    /// The client has it already.
    NotModified,
    /// No byte of it.
    Nothing,
}

impl Wanted {
    /// Reads the headers of a request for a file of this size under this entity tag.
    ///
    /// A range that is not understood is ignored, as the RFC asks, and so are several ranges at
    /// once: players ask for one.
    pub(crate) fn of(headers: &HeaderMap, etag: &str, size: u64) -> Self {
        if let Some(known) = text(headers, header::IF_NONE_MATCH)
            && (known == "*" || known.split(',').any(|tag| weak(tag) == etag))
        {
            return Self::NotModified;
        }
        // The part is of use only to who has the rest of the same file.
        if text(headers, header::IF_RANGE).is_some_and(|tag| tag.trim() != etag) {
            return Self::Whole;
        }
        match text(headers, header::RANGE).and_then(parse) {
            None => Self::Whole,
            Some(Asked::From(start, _)) if start >= size => Self::Nothing,
            Some(Asked::From(start, last)) => {
                Self::Part(start, last.map_or(size, |last| last.saturating_add(1).min(size)))
            }
            Some(Asked::Last(0)) => Self::Nothing,
            Some(Asked::Last(_)) if size == 0 => Self::Nothing,
            Some(Asked::Last(count)) => Self::Part(size.saturating_sub(count), size),
        }
    }

    /// That much of bytes that are at hand.
    pub(crate) fn of_bytes(self, bytes: &Bytes) -> Bytes {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        match self {
            Self::Part(start, end) => bytes.slice(at(start)..at(end)),
            Self::Whole | Self::NotModified | Self::Nothing => bytes.clone(),
        }
    }

    /// The same for the blob's reader.
    pub(crate) fn range(self) -> ByteRange {
        match self {
            Self::Part(start, end) => ByteRange::new(start, end),
            Self::Whole | Self::NotModified | Self::Nothing => ByteRange::FULL,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    From(u64, Option<u64>),
    Last(u64),
}

fn parse(range: &str) -> Option<Asked> {
    let (unit, spec) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || spec.contains(',') {
        return None;
    }
    let (first, last) = spec.trim().split_once('-')?;
    match (number(first), number(last)) {
        (Some(first), None) if last.trim().is_empty() => Some(Asked::From(first, None)),
        (Some(first), Some(last)) if first <= last => Some(Asked::From(first, Some(last))),
        (None, Some(count)) if first.trim().is_empty() => Some(Asked::Last(count)),
        _ => None,
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits alone that do not fit are beyond the end of any file.
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

fn weak(tag: &str) -> &str {
    let tag = tag.trim();
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests;
