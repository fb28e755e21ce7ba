//! Tokens never regress, and no number is given twice.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::job::Job;

use crate::sim::world::World;

use super::Verdict;

/// Checks what workers were granted, by what they saw: a grant that arrived before another was
/// asked for has the lower token; a claim has one answer; a pair has one claim.
pub(super) fn check(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    let received = &world.tally.received;
    for late in received {
        for early in received.iter().take_while(|early| early.at < late.asked_at) {
            if early.pair.token >= late.pair.token {
                let (first, second) = (early.pair.token, late.pair.token);
                verdict.violate(format!("token {second} was asked for after {first} had come"));
            }
        }
    }
    let mut by_token = BTreeMap::new();
    let mut by_claim = BTreeMap::new();
    for grant in received {
        let (token, first) = (grant.pair.token, (grant.claim.clone(), grant.pair));
        if by_token.entry(token).or_insert_with(|| first.clone()) != &first {
            verdict.violate(format!("token {token} was granted twice"));
        }
        if *by_claim.entry(grant.claim.clone()).or_insert(grant.pair) != grant.pair {
            verdict.violate(format!("claim {} was granted two different things", grant.claim));
        }
    }
    let mut seen = BTreeSet::new();
    for wish in world.submitter.wishes.iter().filter_map(|wish| wish.acknowledged) {
        let number = wish.submission;
        if !seen.insert(number) || by_token.contains_key(&number) {
            verdict.violate(format!("number {number} was given twice"));
        }
    }
    for (kind, job, number) in &world.outside.regressions {
        let kind = kind.as_str();
        verdict.violate(format!("{kind} of {job}: {number} was accepted after a higher number"));
    }
    for job in jobs {
        if !job.attempts.is_sorted_by(|one, next| one.token < next.token) {
            verdict.violate(format!("the tokens of {} do not rise", job.id));
        }
    }
}
