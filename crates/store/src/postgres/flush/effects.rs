//! What changed of what the collector has, of notifications and of publications, and what is
//! forgotten.

use deadpool_postgres::Client;

use crate::postgres::{
    overlay::Overlay,
    records::{blob, claim, collection, job, lock, outbox, publication, request},
    session::Question,
    values::number,
};

/// The questions that write it.
pub(super) fn questions<'a>(client: &'a Client, overlay: &Overlay) -> Vec<Question<'a>> {
    let mut questions = Vec::new();
    collected(client, overlay, &mut questions);
    told(client, overlay, &mut questions);
    published(client, overlay, &mut questions);
    questions
}

/// What goes before its place is taken again: first answers, claims and lock grants of long ago,
/// and generations of blobs.
pub(super) fn forgotten<'a>(
    client: &'a Client,
    overlay: &Overlay,
    questions: &mut Vec<Question<'a>>,
) {
    // What went and came again is written anew.
    let changed = overlay.requests.changes().filter(|(_, before, _)| before.is_some());
    let gone = overlay.requests.removals().chain(changed.map(|(key, _, _)| key));
    let gone: Vec<_> = gone.collect();
    if !gone.is_empty() {
        questions.push(request::delete(client, &gone));
    }
    let changed = overlay.claims.changes().filter(|(_, before, _)| before.is_some());
    let gone = overlay.claims.removals().chain(changed.map(|(key, _, _)| key));
    let gone: Vec<_> = gone.collect();
    if !gone.is_empty() {
        questions.push(claim::delete(client, &gone));
    }
    let tokens: Vec<_> = overlay.lock_grants.removals().map(|token| number(*token)).collect();
    if !tokens.is_empty() {
        questions.push(lock::drop_grants(client, tokens));
    }
    let generations: Vec<_> = overlay.blobs.removals().map(|at| number(*at)).collect();
    if !generations.is_empty() {
        questions.push(blob::forget(client, generations));
    }
}

fn collected<'a>(client: &'a Client, overlay: &Overlay, questions: &mut Vec<Question<'a>>) {
    let closed: Vec<_> = overlay.cases.removals().map(|at| number(*at)).collect();
    if !closed.is_empty() {
        questions.push(collection::drop_cases(client, closed));
    }
    let changed = overlay.cases.changes().filter(|(_, before, case)| *before != Some(*case));
    let changed: Vec<_> = changed.map(|(_, _, case)| case).collect();
    if !changed.is_empty() {
        questions.push(collection::put(client, &changed));
    }
    let released = overlay.released.changes().filter(|(_, before, ())| before.is_none());
    let released = released.map(|(id, _, ())| (job::id(*id), true));
    let kept_again = overlay.released.removals().map(|id| (job::id(*id), false));
    let (jobs, released): (Vec<_>, Vec<_>) = released.chain(kept_again).unzip();
    if !jobs.is_empty() {
        questions.push(job::set_released(client, jobs, released));
    }
}

fn told<'a>(client: &'a Client, overlay: &Overlay, questions: &mut Vec<Question<'a>>) {
    let overlay = &overlay.outbox;
    // What goes comes first: another may have its address, or its id, from now on.
    let dropped: Vec<_> = overlay.dropped.iter().map(ToString::to_string).collect();
    if !dropped.is_empty() {
        questions.push(outbox::drop_of(client, dropped.clone()));
        questions.push(outbox::drop_endpoints(client, dropped));
    }
    let endpoints = overlay.endpoints.changes();
    let changed = endpoints.filter(|(id, before, endpoint)| {
        *before != Some(*endpoint) || overlay.dropped.contains(id)
    });
    let changed: Vec<_> = changed.map(|(_, _, endpoint)| endpoint).collect();
    if !changed.is_empty() {
        questions.push(outbox::put_endpoints(client, &changed));
    }
    let rows = overlay.deliveries.changes();
    let rows: Vec<_> =
        rows.filter(|(_, before, row)| *before != Some(*row)).map(|(_, _, row)| row).collect();
    if !rows.is_empty() {
        questions.push(outbox::put(client, &rows));
    }
}

fn published<'a>(client: &'a Client, overlay: &Overlay, questions: &mut Vec<Question<'a>>) {
    let done: Vec<_> = overlay.publications.removals().map(|at| number(*at)).collect();
    if !done.is_empty() {
        questions.push(publication::drop_due(client, done));
    }
    let due = overlay.publications.changes().filter(|(_, before, _)| before.is_none());
    let (submissions, jobs): (Vec<_>, Vec<_>) =
        due.map(|(at, _, job)| (number(*at), job::id(*job))).unzip();
    if !submissions.is_empty() {
        questions.push(publication::put(client, submissions, jobs));
    }
}
