//! What a register accepts, pure: (record, request) → another record, or a refusal.

use palisade_core::{Invalid, LeaseId, Number};
use serde::{Deserialize, Serialize};

use super::{Key, Kind, Pointer, Record, Written};

/// The place of a write among those of one holder to one register: 1 or more, below 2^53, rising.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Op(u64);

impl Op {
    /// What a write has that names none.
    pub const FIRST: Self = Self(1);

    /// Checks the range.
    pub fn new(value: u64) -> Result<Self, Invalid> {
        if (1..=Number::MAX.get()).contains(&value) {
            return Ok(Self(value));
        }
        Err(Invalid::new("op", &value.to_string(), "must be at least 1 and below 2^53"))
    }
}

impl TryFrom<u64> for Op {
    type Error = Invalid;

    fn try_from(value: u64) -> Result<Self, Invalid> {
        Self::new(value)
    }
}

impl From<Op> for u64 {
    fn from(op: Op) -> Self {
        op.0
    }
}

impl std::fmt::Display for Op {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Who writes: the number, whose it is, and which of its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    kind: Kind,
    number: Number,
    author: LeaseId,
    op: Op,
}

impl Stamp {
    /// A holder's: the pair of its grant, and its `op`-th write to this register.
    pub fn grant(token: Number, lease: LeaseId, op: Op) -> Result<Self, Invalid> {
        Self::checked(Kind::Grant, token, lease, op)
    }

    /// A projection's. Whoever projects the same submission is the same author, and there is just
    /// one thing to be written.
    pub fn submission(number: Number) -> Result<Self, Invalid> {
        Self::checked(Kind::Submission, number, LeaseId(0), Op::FIRST)
    }

    fn checked(kind: Kind, number: Number, author: LeaseId, op: Op) -> Result<Self, Invalid> {
        if number == Number::ZERO {
            return Err(Invalid::new("token", "0", "must be a number that was drawn: at least 1"));
        }
        Ok(Self { kind, number, author, op })
    }

    /// The number.
    pub const fn number(&self) -> Number {
        self.number
    }
}

/// What is asked of a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Point at something, or (none) at nothing.
    Write {
        /// Who writes.
        stamp: Stamp,
        /// At what; none deletes.
        pointer: Option<Pointer>,
    },
    /// Raise the fence alone. The stamp's op has no say.
    Raise {
        /// Who raises.
        stamp: Stamp,
    },
    /// An operator sets the fence, and forgets author and kind.
    Reset {
        /// The revision that the operator has looked at: what came since is not undone unseen.
        seen: u64,
        /// Where to.
        fence: Number,
    },
}

/// What the rule says to a request that it does not refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// This is to be the record.
    Change(Record),
    /// It is so already; this is the record.
    Already(Record),
}

/// Why a number does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleReason {
    /// It is below the fence.
    Below,
    /// It is the fence, and another's.
    HeldByAnother,
}

/// Why a register refuses a request. `code` has the stable word for each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Somebody else was granted this since.
    #[error("{}", stale(*number, *fence, *reason))]
    StaleToken {
        /// The number that was offered.
        number: Number,
        /// The lowest that is accepted.
        fence: Number,
        /// Why.
        reason: StaleReason,
    },
    /// This holder has written something later already.
    #[error("write {op} comes after write {last} of the same holder")]
    StaleOp {
        /// The op that was offered.
        op: Op,
        /// The last one that counted.
        last: Op,
    },
    /// This holder has written something else under the same op.
    #[error("write {op} was another one: number the writes of one holder, rising")]
    OpRequired {
        /// The op that was offered.
        op: Op,
    },
    /// The register is fenced by the other kind of number.
    #[error("this register is fenced by {kept}")]
    WrongKind {
        /// The kind that its first write fixed.
        kept: Kind,
    },
    /// The register has changed since the operator looked.
    #[error("this register is at revision {now}, the reset is of revision {seen}")]
    StaleRevision {
        /// The revision that was looked at.
        seen: u64,
        /// The revision now.
        now: u64,
    },
}

fn stale(number: Number, fence: Number, reason: StaleReason) -> String {
    match reason {
        StaleReason::Below => format!("the number {number} is stale, the fence is at {fence}"),
        StaleReason::HeldByAnother => {
            format!("the number {number} is the fence, but was brought by another author")
        }
    }
}

impl Refusal {
    /// The stable word.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::StaleToken { .. } => "stale_token",
            Self::StaleOp { .. } => "stale_op",
            Self::OpRequired { .. } => "op_required",
            Self::WrongKind { .. } => "wrong_kind",
            Self::StaleRevision { .. } => "stale_revision",
        }
    }
}

/// Decides a request on the record as it is (none: there is none yet).
///
/// Asked again with its own outcome as the record, it answers [`Decision::Already`]: that is what
/// makes a lost reply harmless.
pub fn decide(
    key: &Key,
    record: Option<&Record>,
    request: &Request,
    nonce: u128,
) -> Result<Decision, Refusal> {
    let before = record.cloned().unwrap_or_else(|| Record {
        key: key.clone(),
        kind: None,
        fence: Number::ZERO,
        author: None,
        op: None,
        written: None,
        revision: 0,
        nonce,
    });
    let mut after = Record { revision: before.revision + 1, nonce, ..before.clone() };
    match request {
        Request::Reset { seen, fence } => {
            if before.revision != *seen {
                let own = before.revision == seen + 1 && before.nonce == nonce;
                let refusal = Refusal::StaleRevision { seen: *seen, now: before.revision };
                return if own { Ok(Decision::Already(before)) } else { Err(refusal) };
            }
            after.fence = *fence;
            (after.kind, after.author, after.op) = (None, None, None);
        }
        Request::Raise { stamp } => {
            if admit(&before, stamp)? == Admitted::Again {
                return Ok(Decision::Already(before));
            }
            take_over(&mut after, stamp);
        }
        Request::Write { stamp, pointer } => {
            if admit(&before, stamp)? == Admitted::Again
                && let Some(last) = before.op
            {
                let same = before.pointer() == pointer.as_ref();
                match stamp.op.cmp(&last) {
                    std::cmp::Ordering::Less => {
                        return Err(Refusal::StaleOp { op: stamp.op, last });
                    }
                    std::cmp::Ordering::Equal if same => return Ok(Decision::Already(before)),
                    std::cmp::Ordering::Equal => {
                        return Err(Refusal::OpRequired { op: stamp.op });
                    }
                    std::cmp::Ordering::Greater => {}
                }
            }
            take_over(&mut after, stamp);
            after.op = Some(stamp.op);
            after.written = Some(Written { number: stamp.number, pointer: pointer.clone() });
        }
    }
    Ok(Decision::Change(after))
}

#[derive(PartialEq, Eq)]
enum Admitted {
    /// A newer number than the fence, or the fence's own after a reset.
    Newly,
    /// The author that brought the fence.
    Again,
}

/// Whether the stamp's number counts here.
fn admit(record: &Record, stamp: &Stamp) -> Result<Admitted, Refusal> {
    if let Some(kept) = record.kind
        && kept != stamp.kind
    {
        return Err(Refusal::WrongKind { kept });
    }
    let refused =
        |reason| Err(Refusal::StaleToken { number: stamp.number, fence: record.fence, reason });
    match stamp.number.cmp(&record.fence) {
        std::cmp::Ordering::Less => refused(StaleReason::Below),
        std::cmp::Ordering::Greater => Ok(Admitted::Newly),
        std::cmp::Ordering::Equal => match record.author {
            Some(author) if author == stamp.author => Ok(Admitted::Again),
            Some(_) => refused(StaleReason::HeldByAnother),
            None => Ok(Admitted::Newly),
        },
    }
}

/// Moves the fence. A number that is new here has done nothing yet.
fn take_over(after: &mut Record, stamp: &Stamp) {
    after.kind = Some(stamp.kind);
    after.fence = stamp.number;
    after.author = Some(stamp.author);
    after.op = None;
}

#[cfg(test)]
mod tests;
