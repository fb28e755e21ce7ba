//! Where a sabotage bends what is projected from the committed record: publications and
//! notifications.

use std::rc::Rc;

use palisade_core::{
    Number,
    job::Job,
    object::Content,
    outbox::{EventId, Standing},
};
use palisade_store::command::Command;

use crate::engine::CrashEngine;

use super::Sabotage;

/// Bends what is asked, or what it will find.
pub(super) fn before(engine: &mut CrashEngine, broken: Sabotage, command: &mut Command) {
    match (broken, command) {
        (Sabotage::WithdrawnPublished, Command::Publish(_)) => want_again(engine),
        (Sabotage::PublishedByGrant, Command::Publish(_)) => fence_by_grant(engine),
        (Sabotage::SettledWithoutLease, Command::SettleDelivery(asked)) => {
            let EventId { number, .. } = asked.id;
            let row = engine.live.outbox.get(&number);
            if let Some(Standing::Leased(lease_id)) = row.map(|row| row.standing) {
                asked.lease_id = lease_id;
            }
        }
        _ => {}
    }
}

/// Whoever publishes does not look whether the wish was withdrawn.
fn want_again(engine: &mut CrashEngine) {
    let complete = |job: &&Rc<Job>| job.completion.is_some();
    let complete: Vec<_> = engine.live.jobs.values().filter(complete).cloned().collect();
    for mut job in complete {
        let id = job.id;
        let job = Rc::make_mut(&mut job);
        for submission in &mut job.submissions {
            let asked = submission.publication.as_ref();
            if asked.is_some_and(|asked| asked.outcome.is_none()) {
                submission.withdrawn_at = None;
                engine.live.publications_due.insert(submission.number, id);
            }
        }
        engine.live.jobs.insert(id, Rc::new(job.clone()));
    }
}

/// The name is guarded by the number of the grant that completed the job.
fn fence_by_grant(engine: &mut CrashEngine) {
    let due = engine.live.publications_due.first_key_value();
    let Some((number, id)) = due.map(|(number, id)| (*number, *id)) else { return };
    let Some(job) = engine.live.jobs.get(&id) else { return };
    let Some((token, key)) = job.publication_due(number) else { return };
    let key = key.clone();
    let Some(object) = engine.live.objects.get(&key).cloned() else { return };
    let mut object = object;
    let shown = match &object.content {
        Some(Content::Manifest { token, .. }) => *token,
        _ => Number::ZERO,
    };
    let fence = if shown < token { number.min(object.fence) } else { number.next() };
    Rc::make_mut(&mut object).fence = fence;
    engine.live.objects.insert(key, object);
}
