//! Publishing a job's outputs under a stable name: a projection of the committed record.

use crate::{JobId, Number, ObjectKey, Timestamp, refusal::Refusal};

use super::{Content, Intent, LastWrite, NumberKind, Object};

/// What a publication came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The name points at the job's manifest now.
    Yes(Box<Object>),
    /// It did already: somebody else carried this publication out.
    Already,
    /// A newer submission has the name. This one comes too late, for good.
    Superseded {
        /// The lowest number still accepted.
        fence: Number,
    },
}

/// Points the name at the job's manifest, unless a newer submission has it. Fenced by the
/// *submission's* number: a retry of yesterday's export must not overwrite today's, though its
/// grant is newer. Anybody may repeat it.
pub fn publish(
    key: &ObjectKey,
    object: Option<&Object>,
    submission: Number,
    (job, token): (JobId, Number),
    (fresh, now): (Number, Timestamp),
) -> Result<Published, Refusal> {
    if let Some(object) = object {
        if object.kind != NumberKind::Submissions {
            return Err(Refusal::WrongKind { key: key.clone(), kind: object.kind });
        }
        if submission < object.fence {
            return Ok(Published::Superseded { fence: object.fence });
        }
        if submission == object.last.number && object.last.intent == Intent::Publish(job) {
            return Ok(Published::Already);
        }
    }
    let last = LastWrite {
        number: submission,
        lease_id: None,
        op: 1,
        intent: Intent::Publish(job),
        version: fresh,
        at: now,
    };
    Ok(Published::Yes(Box::new(Object {
        key: key.clone(),
        kind: NumberKind::Submissions,
        fence: submission,
        last,
        content: Some(Content::Manifest { job, token }),
    })))
}
