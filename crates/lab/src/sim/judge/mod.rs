//! The checkers. They stand outside the system and are fed what outsiders see: what was
//! acknowledged, what the outside received and still shows, what a look at the jobs and the object
//! store finds when all is done.

mod effects;
pub(super) mod history;
mod linear;
mod locks;
mod numbers;

use std::collections::BTreeSet;

use palisade_core::{
    Digest, Number,
    job::{Job, JobState},
};
use palisade_store::query::{Query, View};

use crate::{designs::Effects, engine::jobs_of};

use super::{outside::Kind, world::World};

/// What came of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Jobs that were wished for.
    pub jobs: u64,
    /// Those not finished within the bound after the faults had ended.
    pub stalled: u64,
    /// Renderings that ran to their end although another of the same job did.
    pub duplicate_renders: u64,
    /// Lasting effects beyond the first, of each kind.
    pub duplicate_effects: [u64; 3],
    /// Jobs acknowledged and gone, or complete without their effect.
    pub lost: u64,
    /// Time spent rendering, in ms.
    pub spent_ms: u64,
    /// The part of it that a completion used, in ms.
    pub used_ms: u64,
    /// How long jobs whose worker died waited for the next, in ms.
    pub recoveries_ms: Vec<u64>,
    /// Effects that the outside refused.
    pub refused: u64,
    /// Events.
    pub steps: u64,
    /// What a design that is held to it must never show.
    pub violations: Vec<String>,
}

impl Verdict {
    /// A violation of a kind, told.
    fn violate(&mut self, what: String) {
        self.violations.push(what);
    }
}

/// Judges a run that is over.
pub(crate) fn judge(world: &World) -> Verdict {
    let jobs = jobs_of(&*world.server.engine);
    let mut verdict = Verdict {
        recoveries_ms: world.tally.recoveries_ms.clone(),
        refused: world.tally.refused,
        steps: world.tally.steps,
        ..Verdict::default()
    };
    count_work(world, &jobs, &mut verdict);
    count_unfinished(world, &jobs, &mut verdict);
    effects::count(world, &jobs, &mut verdict);
    if world.design.is_palisade() {
        numbers::check(world, &jobs, &mut verdict);
        effects::check(world, &jobs, &mut verdict);
        check_acknowledgements(world, &jobs, &mut verdict);
        check_artefacts(world, &jobs, &mut verdict);
        locks::check(world, &mut verdict);
        history::check(world, &jobs, &mut verdict);
        linear::check(world, &mut verdict);
    }
    verdict.violations.extend(world.tally.corrupt.iter().cloned());
    if world.design.is_held_to_it() {
        hold_to_it(&mut verdict);
    }
    verdict
}

fn count_work(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    verdict.spent_ms = world.tally.renderings.iter().map(|rendering| rendering.spent_ms).sum();
    for job in jobs {
        let whole = || {
            let of_job = world.tally.renderings.iter().filter(|one| one.job == job.id);
            of_job.filter(|one| one.whole)
        };
        verdict.duplicate_renders += (whole().count() as u64).saturating_sub(1);
        if let Some(made) = content_of(job) {
            let used = whole().find(|rendering| rendering.content == made);
            verdict.used_ms += used.map_or(0, |rendering| rendering.spent_ms);
        }
    }
}

/// What a complete job made.
fn content_of(job: &Job) -> Option<Digest> {
    let completion = job.completion.as_ref()?;
    completion.manifest.outputs.first().map(|output| output.digest)
}

fn count_unfinished(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    let unanswered = world.submitter.wishes.iter().filter(|wish| wish.acknowledged.is_none());
    verdict.stalled += unanswered.count() as u64;
    let wanted = world.submitter.wanted_jobs();
    verdict.jobs = wanted.len() as u64 + verdict.stalled;
    for id in wanted {
        match jobs.iter().find(|job| job.id == id) {
            None => verdict.lost += 1,
            Some(job) if job.state != JobState::Complete => {
                verdict.stalled += 1;
                if world.design.is_held_to_it() {
                    let (state, attempts) = (job.state, job.attempts.len());
                    verdict.violate(format!("{id} is {state} after {attempts} attempts"));
                }
            }
            Some(_) => {}
        }
    }
}

/// Whatever was answered as done is done, and stays as it was told.
fn check_acknowledgements(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    for wish in &world.submitter.wishes {
        let Some(submitted) = wish.acknowledged else { continue };
        let job = jobs.iter().find(|job| job.id == submitted.job);
        if job.is_none_or(|job| job.submission(submitted.submission).is_none()) {
            let (id, number) = (submitted.job, submitted.submission);
            verdict.violate(format!("submission {number} of {id} was acknowledged and is gone"));
        }
        let mut lasting = world.outside.lasting.iter();
        let after_all = lasting.any(|effect| effect.submission == Some(submitted.submission));
        let withdrawn = wish.withdrawn.is_some_and(|state| state != JobState::Complete);
        if withdrawn && after_all {
            let number = submitted.submission;
            verdict.violate(format!("submission {number} was withdrawn in time, and published"));
        }
    }
    for (id, pair, told, content) in &world.tally.completed {
        let stands = jobs.iter().find(|job| job.id == *id).and_then(|job| job.completion.as_ref());
        if *told != pair.token {
            let asked = pair.token;
            verdict.violate(format!("token {asked} completed {id} in the name of token {told}"));
        }
        let as_told = stands.is_some_and(|stands| {
            stands.token == *told && stands.manifest.outputs[0].digest == *content
        });
        if !as_told {
            verdict.violate(format!("{id} was acknowledged as complete by {told}, and is not"));
        }
    }
    for believed in &world.stranger.believed {
        verdict.violate(format!("a stranger was believed: {believed}"));
    }
}

/// An artefact exists exactly if its job is complete.
fn check_artefacts(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    for job in jobs {
        let Some(content) = content_of(job) else { continue };
        let View::Blob(blob) = world.server.engine.query(&Query::Blob(content)) else { continue };
        let there = blob.is_some_and(|blob| world.blobs.contains(&(content, blob.generation)));
        if !there {
            verdict.violate(format!("{} is complete, and its artefact is not there", job.id));
        }
    }
    let complete: BTreeSet<_> =
        jobs.iter().filter(|job| job.completion.is_some()).map(|job| job.id).collect();
    for effect in &world.outside.lasting {
        if !complete.contains(&effect.job) && world.design.effects() == Effects::Projected {
            verdict.violate(format!("{} is not complete, and has a lasting effect", effect.job));
        }
    }
}

/// Nothing duplicated, nothing lost, nothing stalled.
fn hold_to_it(verdict: &mut Verdict) {
    let (lost, stalled) = (verdict.lost, verdict.stalled);
    for (kind, count) in Kind::ALL.iter().zip(verdict.duplicate_effects) {
        if count > 0 {
            verdict.violate(format!("{count} duplicate effect(s): {}", kind.as_str()));
        }
    }
    if lost > 0 {
        verdict.violate(format!("{lost} job(s) lost"));
    }
    if stalled > 0 {
        verdict.violate(format!("{stalled} job(s) stalled"));
    }
}

/// The numbers that submitters were told.
fn acknowledged(world: &World) -> BTreeSet<Number> {
    let wishes = world.submitter.wishes.iter();
    wishes.filter_map(|wish| wish.acknowledged).map(|submitted| submitted.submission).collect()
}
