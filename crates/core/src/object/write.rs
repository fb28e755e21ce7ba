//! Writing a fenced object: put, delete, raise.

use crate::{Number, ObjectKey, Timestamp, lease::Pair, refusal::Refusal};

use super::{Content, Intent, LastWrite, NumberKind, Object};

/// How a pair stands with the store, read in the transaction that writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It was never granted, or it is forgotten.
    Unknown,
    /// Its lock or job has gone to another, was released, or is finished.
    Closed {
        /// The lowest token that the lock or job still accepts.
        fence: Number,
        /// What closed it, as a word.
        reason: String,
    },
    /// It is held.
    Open,
}

/// A further condition of a write. It replaces nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Condition {
    /// None.
    #[default]
    None,
    /// `If-Match`: the object has this version.
    Version(Number),
    /// `If-Match: *`: there is something to read.
    Exists,
    /// `If-None-Match: *`: there is nothing to read.
    Absent,
}

/// A write by a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The pair shown.
    pub pair: Pair,
    /// Which of this holder's writes to this key it is, rising.
    pub op: u64,
    /// What the object is to point at. None: a tombstone.
    pub content: Option<Content>,
    /// A further condition.
    pub condition: Condition,
}

/// What a write came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The object after it.
    pub object: Object,
    /// Whether this is the recorded answer to a write that was done before.
    pub repeated: bool,
}

/// Writes, in this order of checks: the pair was granted; it is still open; its token is not below
/// the key's fence; the key is guarded by grants; the write is not older than, and not another
/// than, the holder's last; its condition holds.
///
/// `fresh` is a number just drawn: the version.
pub fn write(
    key: &ObjectKey,
    object: Option<&Object>,
    asked: Write,
    standing: &Standing,
    (fresh, now): (Number, Timestamp),
) -> Result<Written, Refusal> {
    let intent = match &asked.content {
        Some(Content::Blob { digest, .. }) => Intent::Put(*digest),
        Some(Content::Manifest { job, .. }) => Intent::Publish(*job),
        None => Intent::Delete,
    };
    admit(key, object, &asked.pair, standing)?;
    if let Some(object) = object
        && let Some(recorded) = repeated(object, &asked.pair, asked.op, intent)?
    {
        return Ok(recorded);
    }
    check_condition(object, asked.condition)?;
    let object = Object {
        key: key.clone(),
        kind: NumberKind::Grants,
        fence: fence_after(object, asked.pair.token),
        last: LastWrite {
            number: asked.pair.token,
            lease_id: Some(asked.pair.lease_id),
            op: asked.op,
            intent,
            version: fresh,
            at: now,
        },
        content: asked.content,
    };
    Ok(Written { object, repeated: false })
}

/// Raises the fence to the pair's token without writing. What can be read stays as it is, and so
/// does the number that wrote it.
pub fn raise(
    key: &ObjectKey,
    object: Option<Object>,
    pair: &Pair,
    standing: &Standing,
    (fresh, now): (Number, Timestamp),
) -> Result<Written, Refusal> {
    admit(key, object.as_ref(), pair, standing)?;
    let fence = fence_after(object.as_ref(), pair.token);
    if let Some(object) = object {
        let repeated = object.fence == fence;
        return Ok(Written { object: Object { fence, ..object }, repeated });
    }
    let last = LastWrite {
        number: pair.token,
        lease_id: Some(pair.lease_id),
        op: 0,
        intent: Intent::Raise,
        version: fresh,
        at: now,
    };
    let object = Object { key: key.clone(), kind: NumberKind::Grants, fence, last, content: None };
    Ok(Written { object, repeated: false })
}

fn fence_after(object: Option<&Object>, token: Number) -> Number {
    object.map_or(token, |object| object.fence.max(token))
}

/// The checks that every holder's write passes first.
fn admit(
    key: &ObjectKey,
    object: Option<&Object>,
    pair: &Pair,
    standing: &Standing,
) -> Result<(), Refusal> {
    match standing {
        Standing::Unknown => {
            let subject = "any lock or job".to_owned();
            return Err(Refusal::UnknownToken { token: pair.token, subject });
        }
        Standing::Closed { fence, reason } => {
            let fence = object.map_or(*fence, |object| object.fence.max(*fence));
            return Err(Refusal::StaleWrite { fence, reason: reason.clone() });
        }
        Standing::Open => {}
    }
    let Some(object) = object else { return Ok(()) };
    if object.kind != NumberKind::Grants {
        return Err(Refusal::WrongKind { key: key.clone(), kind: object.kind });
    }
    if pair.token < object.fence {
        let reason = "a newer holder wrote, or raised the fence".to_owned();
        return Err(Refusal::StaleWrite { fence: object.fence, reason });
    }
    Ok(())
}

/// Writes of one holder can arrive out of order, so they are numbered: an older one is refused, the
/// same one again gets the recorded answer, another one under the same number needs a number.
fn repeated(
    object: &Object,
    pair: &Pair,
    op: u64,
    intent: Intent,
) -> Result<Option<Written>, Refusal> {
    let last = &object.last;
    // A raise leaves the last write's author as it was, so op numbers of another are not ours.
    if last.number != pair.token || last.lease_id != Some(pair.lease_id) || op > last.op {
        return Ok(None);
    }
    if op < last.op {
        return Err(Refusal::StaleOp { op, last: last.op });
    }
    if last.intent == intent {
        return Ok(Some(Written { object: object.clone(), repeated: true }));
    }
    Err(Refusal::OpRequired { op })
}

fn check_condition(object: Option<&Object>, condition: Condition) -> Result<(), Refusal> {
    let readable = object.filter(|object| object.is_readable());
    let holds = match condition {
        Condition::None => true,
        Condition::Version(version) => readable.is_some_and(|o| o.last.version == version),
        Condition::Exists => readable.is_some(),
        Condition::Absent => readable.is_none(),
    };
    if holds {
        return Ok(());
    }
    Err(Refusal::ConditionFailed { version: readable.map(|object| object.last.version) })
}
