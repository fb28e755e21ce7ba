//! The `audit` crate's look at a run: the invariants of the records and the journal, and what the
//! journal tells of faults.

use std::collections::BTreeMap;

use palisade_audit::records::Checker;
#[cfg(test)]
use palisade_audit::{findings::Findings, own};
use palisade_core::{Number, history::Event, job::Job};
#[cfg(test)]
use palisade_core::{
    history::{Subject, What},
    lock::LockClose,
};
use palisade_store::query::{Page, Query, View};

use crate::{
    designs::Design,
    sim::{outside::ENDPOINTS, server::rows, world::World},
};

use super::Verdict;

/// More entries than a run writes.
const ENTRIES: usize = 1_000_000;
/// More rows than an endpoint has.
const ROWS: usize = 10_000;

/// The whole journal, with positions.
fn journal(world: &World) -> Vec<(u64, Event)> {
    match world.server.engine.query(&Query::Events { after: 0, limit: ENTRIES }) {
        View::Events(events) => events,
        _ => Vec::new(),
    }
}

/// Looks at the records. A liar's own are left out: it forges grants on purpose.
pub(super) fn check(world: &World, jobs: &[Job], verdict: &mut Verdict) {
    if world.design == Design::LyingDispatch {
        return;
    }
    // Numbers that were drawn and lost are fine, so any counter above all does.
    let mut checker = Checker::new(Number::MAX).with_one_writer(true);
    let engine = &*world.server.engine;
    if let View::Endpoints(endpoints) = engine.query(&Query::Endpoints) {
        for endpoint in &endpoints {
            checker.endpoint(endpoint);
        }
    }
    for job in jobs {
        checker.job(job);
    }
    for (position, event) in journal(world) {
        checker.event(position, &event);
    }
    let page = Page { limit: usize::MAX, ..Page::default() };
    if let View::Objects(objects) = engine.query(&Query::Objects(page)) {
        for object in &objects {
            checker.object(object);
        }
        checker.all_objects_shown();
    }
    let rows = ENDPOINTS.iter().flat_map(|(id, _)| rows(engine, *id, None, ROWS));
    let rows: BTreeMap<_, _> = rows.map(|row| (row.number, row)).collect();
    for row in rows.values() {
        checker.delivery(row);
    }
    for found in checker.finish() {
        let (rule, record, evidence) = (found.rule, found.record, found.evidence);
        verdict.violate(format!("audit: {rule}: {record}: {evidence}"));
    }
}

/// What the journal tells of faults.
#[cfg(test)]
pub(in crate::sim) fn findings(world: &World) -> Findings {
    let journal = journal(world);
    own::diagnose(journal.iter().map(|(position, event)| (*position, event)))
}

/// How many writes were refused to people whose lock had gone to another.
#[cfg(test)]
pub(in crate::sim) fn writes_refused(world: &World) -> usize {
    let journal = journal(world);
    let lost = |wanted: &Number| {
        journal.iter().any(|(_, event)| {
            matches!(&event.what, What::LockClosed { token, how: LockClose::Superseded, .. }
                if token == wanted)
        })
    };
    let refused = journal.iter().filter(|(_, event)| match (&event.subject, &event.what) {
        (Subject::Object(_), What::Refused { token, code, .. }) => {
            code == "stale_token" && lost(token)
        }
        _ => false,
    });
    refused.count()
}
