//! Submitting.

use palisade_core::{
    Digest, Invalid, JobId, Number, ObjectKey, Refusal,
    blob::{Blob, BlobState},
    history::Joined,
    job::Job,
    lease::Moment,
    object::NumberKind,
    spec::JobKey,
    transition::{self, Destination, Wish},
};

use crate::{
    command::{Submit, Submitted},
    fault::Fault,
    tables::{Ahead, Keeper, Scope, Tables},
};

use super::{Outcome, collect::keep_again, ledger::Request, write};

pub(super) fn submit(tables: &mut dyn Tables, submit: Submit, now: Moment) -> Outcome<Submitted> {
    let Submit { wish, request_id } = submit;
    let scope = Scope::Tenant(wish.tenant.clone());
    let key = wish.spec.key();
    let request = Request::new(scope, request_id, asked(key, wish.publish.as_ref()));
    match request.answered(tables)? {
        Ok(None) => {}
        Ok(Some(answer)) => return Ok(Ok(answer)),
        Err(refusal) => return Ok(Err(refusal)),
    }
    if let Some(refusal) = guarded_by_grants(tables, wish.publish.as_ref())? {
        return Ok(Err(refusal));
    }
    let inputs = match present_inputs(tables, &wish)? {
        Ok(inputs) => inputs,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let submitted = place(tables, wish, key, inputs, now)?;
    request.keep(tables, &submitted)?;
    Ok(Ok(submitted))
}

/// What makes two wishes under one id the same: the key, for it tells the rendering, and the name
/// that it is to have.
fn asked(key: JobKey, publish: Option<&ObjectKey>) -> Digest {
    match publish {
        None => key.0,
        Some(name) => Digest::of(format!("{key} published as {name}").as_bytes()),
    }
}

/// A name that holders write for themselves is refused at once, rather than after the rendering.
fn guarded_by_grants(
    tables: &mut dyn Tables,
    publish: Option<&ObjectKey>,
) -> Result<Option<Refusal>, Fault> {
    let Some(key) = publish else { return Ok(None) };
    let object = tables.object(key)?.filter(|object| object.kind == NumberKind::Grants);
    Ok(object.map(|object| Refusal::WrongKind { key: object.key, kind: object.kind }))
}

/// Every input must be there before the job is: it is kept from then on.
fn present_inputs(tables: &mut dyn Tables, wish: &Wish) -> Outcome<Vec<Blob>> {
    let mut blobs = Vec::new();
    for (name, input) in &wish.spec.inputs {
        let blob = present(tables, input.digest)?;
        let Some(blob) = blob else {
            let field = format!("inputs.{name}.digest");
            return Ok(Err(Refusal::MissingBlob { field, digests: vec![input.digest] }));
        };
        if blob.size_bytes != Some(input.size_bytes) {
            let there = blob.size_bytes.unwrap_or_default();
            let allowed = format!("must be the blob's length, {there}");
            let field = format!("inputs.{name}.size_bytes");
            let invalid = Invalid::new(field, &input.size_bytes.to_string(), allowed);
            return Ok(Err(Refusal::Invalid(invalid)));
        }
        blobs.push(blob);
    }
    Ok(Ok(blobs))
}

pub(super) fn present(tables: &mut dyn Tables, digest: Digest) -> Result<Option<Blob>, Fault> {
    Ok(tables.blob(digest)?.filter(|blob| blob.state == BlobState::Present))
}

fn place(
    tables: &mut dyn Tables,
    wish: Wish,
    key: JobKey,
    inputs: Vec<Blob>,
    now: Moment,
) -> Result<Submitted, Fault> {
    let live = tables.live_job(&wish.tenant, key)?;
    // Looked for only where it could answer.
    let complete = match live {
        None if !wish.fresh => tables.complete_job(&wish.tenant, key)?,
        None | Some(_) => None,
    };
    let complete = complete.map(|id| load(tables, id)).transpose()?;
    let whole = match &complete {
        Some(job) => is_whole(tables, job)?,
        None => false,
    };
    let submission = tables.draw()?;
    match transition::decide(live.is_some(), whole, wish.fresh) {
        Destination::Join => {
            let job = load(tables, live.expect("decided by it"))?;
            join(tables, job, (submission, wish.publish), now)
        }
        Destination::Cache => {
            let job = complete.expect("decided by it");
            // It may have been released, and its outputs be there still: they are wanted again.
            let missing = keep_again(tables, job.id)?;
            debug_assert!(missing.is_empty(), "the cache was asked whether they are there");
            join(tables, job, (submission, wish.publish), now)
        }
        Destination::New => {
            let (job, ()) = write(tables, None, transition::create(submission, wish, now.at))?;
            for blob in inputs {
                tables.keep_blob(blob.digest, blob.generation, &Keeper::Input(job.id))?;
            }
            Ok(Submitted { job: job.id, submission, how: Joined::New })
        }
    }
}

fn load(tables: &mut dyn Tables, id: JobId) -> Result<Job, Fault> {
    let missing = || Fault::Corrupt {
        record: id.to_string(),
        what: "an index names it, but it is not there".to_owned(),
    };
    tables.job(id)?.ok_or_else(missing)
}

fn join(
    tables: &mut dyn Tables,
    job: Job,
    (submission, publish): (Number, Option<ObjectKey>),
    now: Moment,
) -> Result<Submitted, Fault> {
    let before = job.clone();
    let joined = transition::join(job, submission, publish, now.at);
    let (job, how) = write(tables, Some(&before), joined)?;
    Ok(Submitted { job: job.id, submission, how })
}

/// Whether every blob of a complete job is still there.
fn is_whole(tables: &mut dyn Tables, job: &Job) -> Result<bool, Fault> {
    let outputs = job.completion.iter().flat_map(|completion| &completion.manifest.outputs);
    let blobs = outputs.clone().map(|output| output.digest).collect();
    tables.read_ahead(Ahead { blobs, ..Ahead::default() })?;
    for output in outputs {
        if present(tables, output.digest)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
