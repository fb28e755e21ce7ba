//! Publishing: a projection of the committed record, carried out by whoever comes first.

use crate::{
    Number, Timestamp,
    history::What,
    job::{Job, PublicationOutcome},
    object::{self, Object, Published},
};

use super::{Applied, Change};

/// Carries out a submission's publication, if it is due: the job is complete, the submission was
/// not withdrawn, and nobody has carried it out before. Else nothing changes, so anybody may
/// repeat it.
///
/// `object` is what the name is now, read in the same transaction; `fresh` a number just drawn.
/// Answers the object to write, if the name is to point at the job's manifest from now on.
pub fn publish(
    job: Job,
    number: Number,
    object: Option<&Object>,
    (fresh, now): (Number, Timestamp),
) -> Applied<Option<Box<Object>>> {
    let Some((token, key)) = job.publication_due(number) else {
        return Applied::unchanged(job, None);
    };
    let key = key.clone();
    let decided = object::publish(&key, object, number, (job.id, token), (fresh, now));
    let (outcome, after) = match decided {
        Ok(Published::Yes(after)) => {
            (PublicationOutcome::Published { version: fresh, at: now }, Some(after))
        }
        // Its object was written, but not what came of it: told now.
        Ok(Published::Already) => {
            let version = object.map_or(fresh, |object| object.last.version);
            (PublicationOutcome::Published { version, at: now }, None)
        }
        Ok(Published::Superseded { fence }) => {
            (PublicationOutcome::Superseded { fence, at: now }, None)
        }
        Err(_wrong_kind) => (PublicationOutcome::WrongKind { at: now }, None),
    };
    let mut change = Change::of(job, now);
    let submissions = change.job.submissions.iter_mut();
    for submission in submissions.filter(|submission| submission.number == number) {
        if let Some(publication) = &mut submission.publication {
            publication.outcome = Some(outcome);
        }
    }
    change.record(match outcome {
        PublicationOutcome::Published { version, .. } => {
            What::Published { submission: number, key, token, version }
        }
        PublicationOutcome::Superseded { fence, .. } => What::NotPublished {
            submission: number,
            key,
            reason: word(outcome),
            fence: Some(fence),
        },
        PublicationOutcome::WrongKind { .. } => {
            What::NotPublished { submission: number, key, reason: word(outcome), fence: None }
        }
    });
    change.done(after)
}

fn word(outcome: PublicationOutcome) -> String {
    outcome.as_str().to_owned()
}
