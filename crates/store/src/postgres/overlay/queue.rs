//! Queued jobs that the transaction has locked, in the order in which they are granted.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use palisade_core::{
    JobId, Number, Timestamp,
    job::{Job, JobState},
};

use crate::command::Capability;

/// A job's place: higher priority first, then who has waited longest.
pub(crate) type Place = (Reverse<i16>, Timestamp, JobId);

/// How far the transaction has looked into a capability's queue.
#[derive(Debug, Clone, Copy)]
struct Reach {
    /// How many it asked for.
    asked: usize,
    /// The last place that it got; none: it has seen all there is.
    last: Option<Place>,
}

/// The queues, by capability.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// Places that were taken in. Whether a job still stands there, its record tells.
    places: BTreeSet<(Capability, Place)>,
    reach: BTreeMap<Capability, Reach>,
}

/// What a look into a queue came to.
pub(super) enum Look {
    /// These, in their order.
    Found(Vec<Place>),
    /// More has to be fetched: so many.
    More(usize),
}

impl Queues {
    /// Takes in a job, if it is queued.
    pub(super) fn follow(&mut self, job: &Job) {
        if job.state == JobState::Queued {
            self.places.insert((capability_of(job), place_of(job)));
        }
    }

    /// So many were asked for, and these came.
    pub(super) fn reached(&mut self, capability: &Capability, asked: usize, came: &[Place]) {
        let last = if came.len() < asked { None } else { came.iter().max().copied() };
        self.reach.insert(capability.clone(), Reach { asked, last });
    }

    /// The first `limit` places of a capability at which a job stands that is due.
    pub(super) fn look(
        &self,
        capability: &Capability,
        limit: usize,
        stands: impl Fn(&Place) -> bool,
    ) -> Look {
        let Some(reach) = self.reach.get(capability) else { return Look::More(limit) };
        let seen = |place: &Place| reach.last.is_none_or(|last| *place <= last);
        let of_capability = self.of(capability).take_while(|place| seen(place));
        let found: Vec<_> = of_capability.filter(|place| stands(place)).take(limit).collect();
        if found.len() < limit && reach.last.is_some() {
            return Look::More(reach.asked.saturating_mul(2).max(limit));
        }
        Look::Found(found)
    }

    /// Whether somebody looked, and saw all that other transactions left.
    pub(super) fn has_seen_all(&self, capability: &Capability) -> bool {
        self.reach.get(capability).is_some_and(|reach| reach.asked > 0 && reach.last.is_none())
    }

    /// All places of a capability, in their order.
    pub(super) fn of(&self, capability: &Capability) -> impl Iterator<Item = Place> {
        let first = (capability.clone(), (Reverse(i16::MAX), Timestamp(0), JobId(Number::ZERO)));
        let from = (Bound::Included(first), Bound::Unbounded);
        self.places
            .range(from)
            .take_while({
                let capability = capability.clone();
                move |(of, _)| *of == capability
            })
            .map(|(_, place)| *place)
    }
}

pub(super) fn capability_of(job: &Job) -> Capability {
    Capability { recipe: job.spec.recipe.clone(), definition: job.spec.definition }
}

pub(crate) fn place_of(job: &Job) -> Place {
    (Reverse(job.priority), job.run_at, job.id)
}
