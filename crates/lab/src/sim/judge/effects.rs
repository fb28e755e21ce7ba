//! Exactly one lasting effect per job, of each kind.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{JobId, Number, ObjectKey, job::Job};
use palisade_store::query::{Query, View};

use crate::{
    designs::Effects,
    sim::{
        outside::{ENDPOINTS, Kind, Lasting},
        server::rows,
        world::World,
    },
};

use super::{Verdict, acknowledged, content_of};

/// More rows than an endpoint has.
const ROWS: usize = 10_000;

/// Counts duplicates and what is missing, by what the outside shows.
pub(super) fn count(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    let projected = world.design.effects() == Effects::Projected;
    // Whose effect it is: a job's, or where wishes share jobs and names, a wish's.
    let mut by_owner: BTreeMap<(Kind, JobId, Option<Number>), Vec<&Lasting>> = BTreeMap::new();
    for effect in &world.outside.lasting {
        by_owner.entry((effect.kind, effect.job, effect.submission)).or_default().push(effect);
    }
    for ((kind, job, _), effects) in &by_owner {
        let lasting = match kind {
            Kind::Write if !projected => contents_seen(world, *job, effects),
            Kind::Write | Kind::Database | Kind::Notification => effects.len(),
        };
        let place = Kind::ALL.iter().position(|one| one == kind).expect("all kinds are listed");
        verdict.duplicate_effects[place] += (lasting as u64).saturating_sub(1);
    }
    if !projected {
        for job in jobs.iter().filter(|job| job.completion.is_some()) {
            let has = |kind| by_owner.contains_key(&(kind, job.id, None));
            verdict.lost += u64::from(!Kind::ALL.into_iter().all(has));
        }
    }
}

/// How many different contents an outsider could fetch under the job's name from the moment on at
/// which somebody was told of it.
fn contents_seen(world: &World, job: JobId, writes: &[&Lasting]) -> usize {
    let told = world.outside.lasting.iter();
    let told = told.filter(|effect| effect.job == job && effect.kind != Kind::Write);
    let told_at = told.map(|effect| effect.at).min().unwrap_or(u64::MAX);
    let before = writes.iter().rev().find(|write| write.at <= told_at).map(|write| write.content);
    let after = writes.iter().filter(|write| write.at > told_at).map(|write| write.content);
    before.into_iter().chain(after).collect::<BTreeSet<_>>().len()
}

/// What Palisade promises beyond the count: effects tell of what was committed, to those who
/// wished for it, and a name shows the latest wish.
pub(super) fn check(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    let made: BTreeMap<_, _> = jobs.iter().map(|job| (job.id, content_of(job))).collect();
    for effect in &world.outside.lasting {
        let told = made.get(&effect.job).copied().flatten();
        if told.is_some_and(|content| content != effect.content) {
            let (kind, job) = (effect.kind.as_str(), effect.job);
            verdict.violate(format!("a {kind} of {job} tells of something that was not committed"));
        }
    }
    if world.design.effects() == Effects::Projected {
        check_projections(world, jobs, verdict);
    }
}

fn check_projections(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    let acknowledged = acknowledged(world);
    let lasting = &world.outside.lasting;
    let strangers = lasting.iter().filter_map(|effect| effect.submission);
    let strangers: BTreeSet<_> =
        strangers.filter(|number| !acknowledged.contains(number)).collect();
    for number in strangers {
        verdict.violate(format!("submission {number} has effects, and nobody was told of it"));
    }
    for id in world.outside.unreadable.iter().chain(&world.outside.disorder) {
        verdict.violate(format!("{id} cannot be read, or came before what was said earlier"));
    }
    for row in ENDPOINTS.iter().flat_map(|(id, _)| rows(&*world.server.engine, *id, None, ROWS)) {
        let (id, standing) = (row.id(), row.standing.as_str());
        if !world.outside.has(id) {
            verdict.violate(format!("{id} is {standing}, and nobody was told"));
        }
    }
    let mut latest: BTreeMap<ObjectKey, (Number, &Job)> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.completion.is_some()) {
        for submission in job.submissions.iter().filter(|one| one.withdrawn_at.is_none()) {
            let number = submission.number;
            let received = |kind| {
                let mut of_wish = lasting.iter().filter(|one| one.submission == Some(number));
                of_wish.any(|effect| effect.kind == kind)
            };
            if !received(Kind::Database) || !received(Kind::Notification) {
                verdict.lost += 1;
                verdict.violate(format!("submission {number} of {} has no effect", job.id));
            }
            let asked = submission.publication.as_ref();
            let Some(target) = asked.map(|publication| publication.key.clone()) else {
                verdict.violate(format!("submission {number} has lost its name"));
                continue;
            };
            let newest = latest.entry(target).or_insert((number, job));
            if number > newest.0 {
                *newest = (number, job);
            }
        }
    }
    for (target, (number, job)) in latest {
        let View::Resolve(shown) = world.server.engine.query(&Query::Resolve(target.clone()))
        else {
            continue;
        };
        // A wish that was withdrawn after its publication may stand above it.
        let fine = shown.is_some_and(|shown| {
            let made = shown.manifest.map(|manifest| manifest.outputs[0].digest);
            let standing = shown.object.last.number;
            standing > number || (standing == number && made == content_of(job))
        });
        if !fine {
            let id = job.id;
            verdict.violate(format!("{target} does not show submission {number} of {id}"));
        }
    }
}
