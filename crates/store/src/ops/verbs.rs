//! What a worker reports of its attempt: complete, fail, release.

use palisade_core::{
    JobId, Refusal,
    blob::BlobState,
    history::{Event, What},
    job::{Job, Requeued},
    lease::{Moment, Pair},
    transition::{self, Applied, Completed, Present},
};

use crate::{
    command::{Complete, Fail, HandBack, Release},
    fault::Fault,
    tables::{Keeper, Tables},
};

use super::{Outcome, write};

pub(super) fn complete(
    tables: &mut dyn Tables,
    complete: Complete,
    now: Moment,
) -> Outcome<Completed> {
    let Complete { job, pair, manifest } = complete;
    // The blobs are looked at in the transaction that names them.
    let mut present = Present::new();
    for output in &manifest.outputs {
        if let Some(blob) = tables.blob(output.digest)?
            && blob.state == BlobState::Present
        {
            present.insert(output.digest, blob.generation);
        }
    }
    let named = Named { verb: "complete", job, pair };
    let outputs: Vec<_> = manifest.outputs.iter().map(|output| output.digest).collect();
    let decided = attempt_verb(tables, named, now, |job| {
        transition::complete(job, &pair, manifest, &present, now.at)
    })?;
    let (changed, completed) = match decided {
        Ok(decided) => decided,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if changed {
        for digest in outputs {
            tables.keep_blob(digest, present[&digest], &Keeper::Output(job))?;
        }
    }
    Ok(Ok(completed))
}

pub(super) fn fail(tables: &mut dyn Tables, fail: Fail, now: Moment) -> Outcome<Requeued> {
    let Fail { job, pair, failure, chance } = fail;
    let named = Named { verb: "fail", job, pair };
    let decided = attempt_verb(tables, named, now, |job| {
        transition::fail(job, &pair, failure, chance, now.at)
    })?;
    Ok(decided.map(|(_, requeued)| requeued))
}

pub(super) fn release(
    tables: &mut dyn Tables,
    release: &Release,
    now: Moment,
) -> Outcome<Requeued> {
    let Release { job, pair } = *release;
    let named = Named { verb: "release", job, pair };
    let decided = attempt_verb(tables, named, now, |job| transition::release(job, &pair, now.at))?;
    Ok(decided.map(|(_, requeued)| requeued))
}

pub(super) fn hand_back(tables: &mut dyn Tables, asked: &HandBack, now: Moment) -> Outcome<bool> {
    let HandBack { job, pair, seen_at } = *asked;
    let named = Named { verb: "release", job, pair };
    let rule = |job| transition::hand_back(job, &pair, seen_at, now.at);
    let decided = attempt_verb(tables, named, now, rule)?;
    Ok(decided.map(|(_, released)| released))
}

/// A verb and the attempt that it names.
#[derive(Clone, Copy)]
struct Named {
    verb: &'static str,
    job: JobId,
    pair: Pair,
}

/// Runs a verb's rule on the job's record and writes what it answers; a refusal goes to the
/// journal. Answers whether the record changed.
fn attempt_verb<A>(
    tables: &mut dyn Tables,
    named: Named,
    now: Moment,
    rule: impl FnOnce(Job) -> Result<Applied<A>, Refusal>,
) -> Outcome<(bool, A)> {
    let Some(record) = tables.job(named.job)? else {
        return Ok(Err(Refusal::NotFound { what: "job", id: named.job.to_string() }));
    };
    let before = record.clone();
    match rule(record) {
        Ok(applied) => {
            let changed = !applied.history.is_empty();
            let (_, answer) = write(tables, Some(&before), applied)?;
            Ok(Ok((changed, answer)))
        }
        Err(refusal) => {
            journal(tables, named, &refusal, now)?;
            Ok(Err(refusal))
        }
    }
}

fn journal(
    tables: &mut dyn Tables,
    named: Named,
    refusal: &Refusal,
    now: Moment,
) -> Result<(), Fault> {
    let what = What::Refused {
        verb: named.verb.to_owned(),
        token: named.pair.token,
        code: refusal.code().to_owned(),
        message: refusal.to_string(),
    };
    tables.append(&[Event::of_job(now.at, named.job, what)])
}
