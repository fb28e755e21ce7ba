//! The collector's transactions: each looks again at what it is told, and decides by the rules.

use palisade_core::{
    Digest, JobId, Number,
    blob::collect::{self, Case, Look},
    history::{Event, What},
    job::Job,
    lease::Moment,
};

use crate::{
    command::{Collect, ForgetBlobs, MarkCleared, Places, ReleaseJobs, Released},
    fault::Fault,
    tables::{Ahead, Keeper, Tables},
};

use super::Outcome;

/// Looks at generations that seemed unkept: notes them, acquits them, or condemns them. Answers
/// those that it condemned.
pub(super) fn collect(tables: &mut dyn Tables, asked: &Collect, now: Moment) -> Outcome<Places> {
    tables.drop_passed_pins(now.at)?;
    let mut condemned = Vec::new();
    for &(digest, generation) in &asked.blobs {
        let Some(blob) = tables.generation(digest, generation)? else { continue };
        let kept = tables.is_kept(digest, generation)?;
        let case = tables.case(digest, generation)?;
        match collect::look(blob, kept, case, now.at, asked.grace_ms) {
            Look::Leave => {}
            Look::Note(case) => tables.put_case(&case)?,
            Look::Acquit => tables.drop_case(digest, generation)?,
            Look::Condemn(blob, case) => {
                tables.put_blob(&blob)?;
                tables.put_case(&case)?;
                condemned.push((digest, generation));
            }
        }
    }
    Ok(Ok(Places { places: condemned }))
}

/// Records that places of condemned generations were cleared. Answers those that it recorded.
pub(super) fn mark_cleared(tables: &mut dyn Tables, asked: &MarkCleared) -> Outcome<Places> {
    of_cases(tables, &asked.places, |tables, case| match collect::cleared(case) {
        Some(case) => tables.put_case(&case).map(|()| true),
        None => Ok(false),
    })
}

/// Forgets generations whose place was cleared again after their tombstone's time. Answers those
/// that are forgotten.
pub(super) fn forget(tables: &mut dyn Tables, asked: &ForgetBlobs, now: Moment) -> Outcome<Places> {
    of_cases(tables, &asked.places, |tables, case| {
        let may = collect::may_forget(case, now.at, asked.tombstone_ms);
        if may {
            tables.forget_blob(case.digest, case.generation)?;
        }
        Ok(may)
    })
}

fn of_cases(
    tables: &mut dyn Tables,
    asked: &[(Digest, Number)],
    step: impl Fn(&mut dyn Tables, Case) -> Result<bool, Fault>,
) -> Outcome<Places> {
    let mut places = Vec::new();
    for &(digest, generation) in asked {
        if let Some(case) = tables.case(digest, generation)?
            && step(tables, case)?
        {
            places.push((digest, generation));
        }
    }
    Ok(Ok(Places { places }))
}

/// Releases jobs whose time is over: their inputs and outputs are no longer kept by them.
pub(super) fn release_jobs(
    tables: &mut dyn Tables,
    asked: &ReleaseJobs,
    now: Moment,
) -> Outcome<Released> {
    let mut released = Vec::new();
    for &id in &asked.jobs {
        let Some(job) = tables.job(id)? else { continue };
        if !collect::is_past(&job, now.at, asked.keep_ms) || tables.is_released(id)? {
            continue;
        }
        for (digest, keeper) in kept_by(&job) {
            tables.unkeep_blob(digest, &keeper)?;
        }
        tables.set_released(id, true)?;
        tables.append(&[Event::of_job(now.at, id, What::Released)])?;
        released.push(id);
    }
    Ok(Ok(Released { jobs: released }))
}

/// What a job keeps, and as what.
fn kept_by(job: &Job) -> Vec<(Digest, Keeper)> {
    let outputs = job.completion.iter().flat_map(|completion| &completion.manifest.outputs);
    let outputs = outputs.map(|output| (output.digest, Keeper::Output(job.id)));
    let inputs = job.spec.inputs.values().map(|input| (input.digest, Keeper::Input(job.id)));
    outputs.chain(inputs).collect()
}

/// Keeps again what a released job needs, since somebody wants it. What is not there any more is
/// answered, and nothing has changed then.
pub(super) fn keep_again(tables: &mut dyn Tables, id: JobId) -> Result<Vec<Digest>, Fault> {
    if !tables.is_released(id)? {
        return Ok(Vec::new());
    }
    let Some(job) = tables.job(id)? else { return Ok(Vec::new()) };
    // A complete job's inputs are not needed again; the others' outputs are not there yet.
    let is_complete = job.completion.is_some();
    let needed = kept_by(&job).into_iter();
    let needed: Vec<_> =
        needed.filter(|(_, keeper)| matches!(keeper, Keeper::Output(_)) == is_complete).collect();
    let blobs = needed.iter().map(|(digest, _)| *digest).collect();
    tables.read_ahead(Ahead { blobs, ..Ahead::default() })?;
    let (mut present, mut missing) = (Vec::new(), Vec::new());
    for (digest, keeper) in needed {
        match super::submit::present(tables, digest)? {
            Some(blob) => present.push((blob, keeper)),
            None => missing.push(digest),
        }
    }
    if missing.is_empty() {
        for (blob, keeper) in present {
            tables.keep_blob(blob.digest, blob.generation, &keeper)?;
        }
        tables.set_released(id, false)?;
    }
    Ok(missing)
}
