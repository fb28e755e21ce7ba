//! What a register stores, and how it is spelled: JSON, so that a person with only a bucket can
//! read it.

use bytes::Bytes;
use palisade_core::{Invalid, LeaseId, Number};
use serde::{Deserialize, Serialize};

use super::{Key, Op};

/// The format that is written. A reader refuses what it does not know.
const FORMAT: u32 = 1;

/// Longest pointer, in bytes.
const POINTER_BYTES_MAX: usize = 4_096;

/// Which kind of number a register's fence is made of. Numbers of two kinds on one register would
/// let a retry of an old wish overtake a newer one, so the first write fixes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Fencing tokens: workers that write themselves.
    Grant,
    /// Submissions' numbers: projections of committed records.
    Submission,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Grant => "grants' tokens",
            Self::Submission => "submissions' numbers",
        })
    }
}

/// What a register points at: a blob, a manifest, a key of the user's own. Opaque text of 1 to
/// 4,096 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(String);

impl Pointer {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Pointer {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let fits = (1..=POINTER_BYTES_MAX).contains(&text.len());
        if fits && !text.chars().any(char::is_control) {
            return Ok(Self(text.to_owned()));
        }
        let allowed = format!("must be 1 to {POINTER_BYTES_MAX} bytes, no control characters");
        Err(Invalid::new("pointer", text, allowed))
    }
}

impl TryFrom<String> for Pointer {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.0
    }
}

/// What stands in a register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The number that wrote it.
    pub number: Number,
    /// What it points at; none: it was deleted, and this is the tombstone.
    pub pointer: Option<Pointer>,
}

/// The state of a register.
///
/// Invariant: the fence never falls, but by an operator's reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its own name, so that a file copied to another's place is noticed.
    pub key: Key,
    /// Which kind of number fences it; none after a reset.
    pub kind: Option<Kind>,
    /// The lowest number still accepted.
    pub fence: Number,
    /// Who brought the fence here; none after a reset. Only this author may write with a number
    /// that equals the fence.
    pub author: Option<LeaseId>,
    /// The author's last write at this fence; none when it has only raised.
    pub op: Option<Op>,
    /// What stands; none when nobody has written yet.
    pub written: Option<Written>,
    /// Counts the changes of this register.
    ///
    /// Invariant: rises by one with each change, resets included, so that a record's bytes never
    /// come back, and neither does the version that a store makes of them.
    pub revision: u64,
    /// Random, from the change: two writers that change the same revision in the same way have
    /// different bytes, and so has a register that somebody deleted by hand and began again.
    #[serde(with = "hexadecimal")]
    pub nonce: u128,
}

#[derive(Serialize, Deserialize)]
struct Stored<R> {
    format: u32,
    #[serde(flatten)]
    record: R,
}

impl Record {
    /// The bytes to be stored.
    pub fn encode(&self) -> Bytes {
        let stored = Stored { format: FORMAT, record: self };
        serde_json::to_vec_pretty(&stored).expect("a record has nothing that JSON lacks").into()
    }

    /// Reads what is stored under `key`; else says what was found.
    pub fn decode(key: &Key, bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| format!("no record: {error}");
        let head: Head = serde_json::from_slice(bytes).map_err(unreadable)?;
        if head.format != FORMAT {
            return Err(format!("its format is {}, known is {FORMAT}", head.format));
        }
        let record = serde_json::from_slice::<Stored<Self>>(bytes).map_err(unreadable)?.record;
        if record.key != *key {
            return Err(format!("it is the record of {}", record.key));
        }
        if record.op.is_some() && (record.written.is_none() || record.author.is_none()) {
            return Err("it has an op, but nothing written, or by nobody".to_owned());
        }
        Ok(record)
    }

    /// What it points at now.
    pub fn pointer(&self) -> Option<&Pointer> {
        self.written.as_ref().and_then(|written| written.pointer.as_ref())
    }
}

mod hexadecimal {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(value: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value:032x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        u128::from_str_radix(&text, 16).map_err(de::Error::custom)
    }
}
