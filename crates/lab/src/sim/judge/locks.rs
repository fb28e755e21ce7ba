//! What people who used the lock and wrote the object under it saw.

use palisade_store::query::{Query, View};

use crate::sim::{
    locker::{Put, object_key},
    world::World,
};

use super::Verdict;

/// Checks grants against each other, writes against each other, and what stands in the end.
pub(super) fn check(world: &World, verdict: &mut Verdict) {
    for wrong in &world.lockers.wrong {
        verdict.violate(wrong.clone());
    }
    let over = world.lockers.people.iter().filter(|person| !person.is_over()).count();
    if over > 0 {
        verdict.violate(format!("{over} of those who want the lock never get their turns"));
    }
    check_turns(world, verdict);
    check_puts(world, verdict);
}

/// Tokens rise with time, and no two people could rely on the lock at once.
fn check_turns(world: &World, verdict: &mut Verdict) {
    let turns = &world.lockers.turns;
    for late in turns {
        for early in turns {
            if early.heard_at < late.asked_at && early.pair.token >= late.pair.token {
                let (first, second) = (early.pair.token, late.pair.token);
                verdict.violate(format!("lock token {second} was asked for after {first} came"));
            }
            let others = early.pair.token < late.pair.token && early.who != late.who;
            let overlap = early.trusted.0.max(late.trusted.0) < early.trusted.1.min(late.trusted.1);
            if others && overlap {
                let (first, second) = (early.pair.token, late.pair.token);
                verdict.violate(format!("tokens {first} and {second} held the lock at once"));
            }
        }
    }
}

/// A write that was acknowledged is not older than one acknowledged before it was sent; and the
/// object shows the last of them, or a later one.
fn check_puts(world: &World, verdict: &mut Verdict) {
    let puts = &world.lockers.puts;
    for late in puts {
        for early in puts.iter().filter(|early| early.told_at < late.asked_at) {
            if early.stamp > late.stamp {
                let (first, second) = (early.stamp, late.stamp);
                verdict.violate(format!("write {second:?} was taken after {first:?}"));
            }
        }
    }
    let Some(last) = puts.iter().max_by_key(|put| put.stamp) else { return };
    let View::Object(object) = world.server.engine.query(&Query::Object(object_key())) else {
        return;
    };
    let shown = object.map(|object| (object.last.number, object.last.op));
    if shown < Some(last.stamp) {
        let Put { stamp, .. } = last;
        verdict.violate(format!("write {stamp:?} was acknowledged, and {shown:?} stands"));
    }
}
