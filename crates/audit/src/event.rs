//! Our own vocabulary of a lock's or lease's history: what a line of any log is translated into.

use palisade_core::Timestamp;

/// What happened, in our words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// A worker asked for the resource.
    Requested,
    /// A worker asked and was told that another holds it.
    Denied,
    /// A worker was granted the resource.
    Acquired,
    /// The holder's lease was extended.
    Renewed,
    /// The holder tried to extend its lease and could not.
    RenewFailed,
    /// Somebody gave the lease up.
    Released,
    /// The lock service took the lease back because its time was over.
    Expired,
    /// Work began.
    Started,
    /// Work went on.
    Progress,
    /// Something that outsiders can see was done.
    Effect,
    /// An effect was attempted, and what guards its place refused it.
    Refused,
    /// The worker considers the work done.
    Completed,
    /// The worker's process ended.
    Exited,
    /// A worker reports that it had stood still; `duration_ms` says for how long, up to `at`.
    Paused,
}

impl EventKind {
    /// Every kind, in the order of the enumeration.
    pub const ALL: [Self; 14] = [
        Self::Requested,
        Self::Denied,
        Self::Acquired,
        Self::Renewed,
        Self::RenewFailed,
        Self::Released,
        Self::Expired,
        Self::Started,
        Self::Progress,
        Self::Effect,
        Self::Refused,
        Self::Completed,
        Self::Exited,
        Self::Paused,
    ];

    /// The word that stands for it in a log.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Denied => "denied",
            Self::Acquired => "acquired",
            Self::Renewed => "renewed",
            Self::RenewFailed => "renew_failed",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Started => "started",
            Self::Progress => "progress",
            Self::Effect => "effect",
            Self::Refused => "refused",
            Self::Completed => "completed",
            Self::Exited => "exited",
            Self::Paused => "paused",
        }
    }

    /// The kind that `word` stands for, if it is one of ours.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "requested" => Self::Requested,
            "denied" => Self::Denied,
            "acquired" => Self::Acquired,
            "renewed" => Self::Renewed,
            "renew_failed" => Self::RenewFailed,
            "released" => Self::Released,
            "expired" => Self::Expired,
            "started" => Self::Started,
            "progress" => Self::Progress,
            "effect" => Self::Effect,
            "refused" | "effect_refused" => Self::Refused,
            "completed" => Self::Completed,
            "exited" => Self::Exited,
            "paused" => Self::Paused,
            _ => return None,
        })
    }

    /// The same, however it is written: `ACQUIRED`, `Renew-Failed`.
    pub(crate) fn from_loose_word(word: &str) -> Option<Self> {
        let plain = word.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        Self::from_word(&plain)
    }

    /// Whether an entry of this kind may leave out the worker (a lock service expires leases).
    pub const fn may_lack_worker(self) -> bool {
        matches!(self, Self::Expired)
    }

    /// Whether an entry of this kind may leave out the resource (a process ends with all it has).
    pub const fn may_lack_resource(self) -> bool {
        matches!(self, Self::Exited | Self::Paused)
    }
}

/// Where an entry stands: a file by its index in the list of files, and a line in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Source {
    /// Index of the file, from 0.
    pub file: u32,
    /// Number of the line, from 1.
    pub line: u64,
}

/// One entry of a history. Texts are borrowed from the line that it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When, in ms since the epoch, on the clock of whoever wrote it.
    pub at: Timestamp,
    /// Who; empty when the entry does not say ([`EventKind::may_lack_worker`]).
    pub worker: &'a str,
    /// Of what; empty when the entry does not say ([`EventKind::may_lack_resource`]).
    pub resource: &'a str,
    /// What happened.
    pub event: EventKind,
    /// The lease's length, for grants and renewals.
    pub ttl_ms: Option<u64>,
    /// That length is not told by the history: it is what somebody takes for granted.
    pub ttl_assumed: bool,
    /// The fencing token, of a grant or carried by an effect.
    pub token: Option<u64>,
    /// Which sort of effect (`write`, `notify`).
    pub kind: Option<&'a str>,
    /// Anything more: a path, an error's text.
    pub detail: Option<&'a str>,
    /// How long, for a reported pause.
    pub duration_ms: Option<u64>,
    /// Where it stands.
    pub source: Source,
}

impl<'a> Entry<'a> {
    /// An entry with the four fields that every entry has.
    pub const fn new(at: Timestamp, worker: &'a str, resource: &'a str, event: EventKind) -> Self {
        Self {
            at,
            worker,
            resource,
            event,
            ttl_ms: None,
            ttl_assumed: false,
            token: None,
            kind: None,
            detail: None,
            duration_ms: None,
            source: Source { file: 0, line: 0 },
        }
    }
}

/// Whether what a log says beside an effect means that the effect was refused.
///
/// Whole words only, because details are often paths: `exports/refused-4.mp4` says nothing.
pub fn says_refused(text: &str) -> bool {
    let text = text.trim();
    if matches!(text, "412" | "HTTP 412" | "http 412" | "status 412" | "status=412") {
        return true;
    }
    words(text).any(|word| {
        ["refused", "rejected", "fenced", "stale_token", "stale"]
            .iter()
            .any(|sign| word.eq_ignore_ascii_case(sign))
    }) || contains_ignoring_case(text, "precondition failed")
}

/// Whether a failed renewal's text says that the lease is gone, rather than that nobody answered.
pub fn says_lost(text: &str) -> bool {
    words(text).any(|word| {
        ["lost", "expired", "stale", "stale_token"]
            .iter()
            .any(|sign| word.eq_ignore_ascii_case(sign))
    }) || ["not owner", "not held", "no longer", "not the holder", "missing lock", "not locked by"]
        .iter()
        .any(|phrase| contains_ignoring_case(text, phrase))
}

/// Whether a release's text says that it did nothing, because the lock was another's.
pub fn says_harmless(text: &str) -> bool {
    says_refused(text)
        || ["not owner", "not held", "not the holder", "no-op", "noop", "not locked by", "mismatch"]
            .iter()
            .any(|phrase| contains_ignoring_case(text, phrase))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',', ';', ':', '(', ')', '"', '=']).filter(|word| !word.is_empty())
}

fn contains_ignoring_case(text: &str, phrase: &str) -> bool {
    text.as_bytes()
        .windows(phrase.len())
        .any(|window| window.eq_ignore_ascii_case(phrase.as_bytes()))
}

#[cfg(test)]
mod tests;
