//! Publications: carried out from the committed record, by whoever comes first.
//!
//! Invariant: a publication is on the list of those due exactly while the job's record says that it
//! is due. The list changes in the transaction that changes the record, so a crash between the
//! commit and the publication loses nothing: the next who looks carries it out.

use palisade_core::{
    JobId, Number,
    blob::BlobState,
    job::Job,
    lease::Moment,
    object::Object,
    transition::{self, Applied},
};

use crate::{
    command::{Projected, Publish},
    fault::Fault,
    tables::{Ahead, Keeper, Tables},
};

use super::{Outcome, write};

pub(super) fn publish(tables: &mut dyn Tables, asked: Publish, now: Moment) -> Outcome<Projected> {
    // One more than is carried out tells whether there are more.
    let mut due = tables.publications_due(asked.limit.saturating_add(1))?;
    let more = due.len() > asked.limit;
    due.truncate(asked.limit);
    read_ahead(tables, &due)?;
    let mut carried_out = Vec::new();
    for (number, id) in due {
        match read(tables, id, number) {
            Ok(Some((job, shown))) => carry_out(tables, job, number, shown, now)?,
            // It would be found for ever.
            Ok(None) => tables.drop_publication_due(number)?,
            // One record that cannot be read does not hold up everybody else's exports.
            Err(fault @ Fault::Corrupt { .. }) => {
                tracing::error!(%fault, submission = %number, "a publication is left for later");
                continue;
            }
            Err(fault) => return Err(fault),
        }
        carried_out.push((id, number));
    }
    Ok(Ok(Projected { carried_out, more }))
}

/// The names that are due and what they will show, all together.
fn read_ahead(tables: &mut dyn Tables, due: &[(Number, JobId)]) -> Result<(), Fault> {
    if !tables.is_far() {
        return Ok(());
    }
    let mut jobs: Vec<_> = due.iter().map(|(_, id)| *id).collect();
    jobs.dedup();
    tables.read_ahead(Ahead { jobs, ..Ahead::default() })?;
    let mut ahead = Ahead::default();
    for &(number, id) in due {
        let job = match tables.job(id) {
            Ok(Some(job)) => job,
            // It is seen to when its turn comes.
            Ok(None) | Err(Fault::Corrupt { .. }) => continue,
            Err(fault) => return Err(fault),
        };
        ahead.objects.extend(job.publication_due(number).map(|(_, key)| key.clone()));
        let outputs = job.completion.iter().flat_map(|completion| &completion.manifest.outputs);
        ahead.blobs.extend(outputs.map(|output| output.digest));
    }
    tables.read_ahead(ahead)
}

/// The job and what the name shows now. None: there is nothing to carry out after all.
fn read(
    tables: &mut dyn Tables,
    id: JobId,
    number: Number,
) -> Result<Option<(Job, Option<Object>)>, Fault> {
    let Some(job) = tables.job(id)? else { return Ok(None) };
    let Some((_, key)) = job.publication_due(number) else { return Ok(None) };
    let shown = tables.object(key)?;
    Ok(Some((job, shown)))
}

fn carry_out(
    tables: &mut dyn Tables,
    job: Job,
    number: Number,
    shown: Option<Object>,
    now: Moment,
) -> Result<(), Fault> {
    let fresh = (tables.draw()?, now.at);
    let before = job.clone();
    let Applied { job, answer: object, history } =
        transition::publish(job, number, shown.as_ref(), fresh);
    let applied = Applied { job, answer: (), history };
    let (job, ()) = write(tables, Some(&before), applied)?;
    let Some(object) = object else { return Ok(()) };
    keep_outputs(tables, &job, &object)?;
    if let Some(shown) = shown.filter(Object::is_readable) {
        tables.drop_keeper(&Keeper::Object(shown.last.version))?;
    }
    tables.put_object(&object)
}

/// What the name shows is kept by the name itself, also should its job be removed one day.
fn keep_outputs(tables: &mut dyn Tables, job: &Job, object: &Object) -> Result<(), Fault> {
    let keeper = Keeper::Object(object.last.version);
    for output in job.completion.iter().flat_map(|completion| &completion.manifest.outputs) {
        // The completion keeps the generation that it named, so the newest is that one.
        let blob = tables.blob(output.digest)?.filter(|blob| blob.state == BlobState::Present);
        if let Some(blob) = blob {
            tables.keep_blob(blob.digest, blob.generation, &keeper)?;
        }
    }
    Ok(())
}

/// Brings the list of publications due in line with a record that was written.
pub(super) fn follow(
    tables: &mut dyn Tables,
    before: Option<&Job>,
    after: &Job,
) -> Result<(), Fault> {
    if after.completion.is_none() {
        return Ok(());
    }
    let due = |job: &Job| -> Vec<Number> { job.publications_due().collect() };
    let (was, is) = (before.map(due).unwrap_or_default(), due(after));
    for number in is.iter().filter(|number| !was.contains(number)) {
        tables.put_publication_due(*number, after.id)?;
    }
    for number in was.iter().filter(|number| !is.contains(number)) {
        tables.drop_publication_due(*number)?;
    }
    Ok(())
}
