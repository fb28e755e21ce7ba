//! What the commands of a batch changed, as questions: one statement a table, the journal last.

mod effects;

use std::collections::BTreeSet;

use deadpool_postgres::Client;
use palisade_core::Number;

use crate::{lease_book::Held, tables::HeldLeases};

use super::{
    overlay::Overlay,
    records::{
        blob, claim, job,
        journal::{self, Moves},
        lease, lock, object, request, session,
    },
    session::{Question, question},
    values::{instant, number},
};

const RECORD_CLOCK: &str = "UPDATE clock SET clock_ms = greatest(clock_ms, $1::bigint)";

/// What is introduced to each connection.
pub(super) const ALL: &[&str] = &[RECORD_CLOCK];

/// The questions that write all changes. The last of them appends to the journal, where the second
/// value says so.
pub(super) fn questions<'a>(
    client: &'a Client,
    overlay: &mut Overlay,
    now: i64,
) -> (Vec<Question<'a>>, bool) {
    let mut questions = Vec::new();
    let moves = jobs(client, overlay, &mut questions);
    leases(client, overlay, &mut questions);
    heard(client, overlay, now, &mut questions);
    effects::forgotten(client, overlay, &mut questions);
    answers(client, overlay, now, &mut questions);
    blobs(client, overlay, &mut questions);
    locks(client, overlay, &mut questions);
    objects(client, overlay, &mut questions);
    questions.extend(effects::questions(client, overlay));
    if let Some(clock) = overlay.clock {
        questions.push(question!(client, RECORD_CLOCK, instant(clock)));
    }
    questions.extend(journal::drop_chunks(client, &overlay.retention.dropped));
    let tells = !overlay.entries.is_empty() || moves != Moves::default();
    if tells {
        questions.push(journal::append(client, &overlay.entries, moves));
    }
    (questions, tells)
}

fn jobs<'a>(client: &'a Client, overlay: &Overlay, questions: &mut Vec<Question<'a>>) -> Moves {
    let mut moves = Moves::default();
    let (mut new, mut changed, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    for (id, before, job) in overlay.jobs.changes() {
        let from = before.map(|before| before.state);
        if from != Some(job.state) {
            moves.count(from, job.state);
        }
        match before {
            None => new.push(job),
            Some(before) if before == job => {}
            Some(_) => {
                changed.push(job);
                versions.push(overlay.versions[id]);
            }
        }
    }
    // Changes first: a key has one live job, and a job ends before the next one has its key.
    if !changed.is_empty() {
        questions.push(job::update(client, &changed, versions));
    }
    if !new.is_empty() {
        questions.push(job::insert(client, &new));
    }
    let granted = overlay.tokens.changes().filter(|(_, before, _)| before.is_none());
    let (tokens, of_jobs): (Vec<_>, Vec<_>) =
        granted.map(|(token, _, id)| (number(*token), job::id(*id))).unzip();
    if !tokens.is_empty() {
        questions.push(job::insert_tokens(client, tokens, of_jobs));
    }
    moves
}

fn leases<'a>(client: &'a Client, overlay: &mut Overlay, questions: &mut Vec<Question<'a>>) {
    let mut touched: BTreeSet<Number> = BTreeSet::new();
    overlay.book.commit(|token, _| {
        touched.insert(token);
    });
    let (mut new, mut changed, mut gone): (Vec<&Held>, Vec<&Held>, Vec<i64>) = Default::default();
    for token in touched {
        match (overlay.lease_rows.get(&token), overlay.book.get(token)) {
            (None, Some(held)) => new.push(held),
            (Some(before), Some(held)) if before != held => changed.push(held),
            (Some(_), None) => gone.push(number(token)),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    if !new.is_empty() {
        questions.push(lease::insert(client, &new));
    }
    if !changed.is_empty() {
        questions.push(lease::update(client, &changed));
    }
    if !gone.is_empty() {
        questions.push(lease::delete(client, gone));
    }
}

fn heard<'a>(client: &'a Client, overlay: &Overlay, now: i64, questions: &mut Vec<Question<'a>>) {
    let beats: Vec<_> = overlay.sessions.changes().map(|(id, _, seq)| (id, *seq)).collect();
    if !beats.is_empty() {
        questions.push(session::put_beats(client, &beats, now));
    }
    let pauses: Vec<_> = overlay.pauses.changes().map(|(pause, _, ())| *pause).collect();
    if !pauses.is_empty() {
        questions.push(session::put_pauses(client, &pauses, now));
    }
}

fn answers<'a>(client: &'a Client, overlay: &Overlay, now: i64, questions: &mut Vec<Question<'a>>) {
    let claims: Vec<_> = overlay.claims.changes().map(|(claim, _, row)| (claim, row)).collect();
    if !claims.is_empty() {
        questions.push(claim::insert(client, &claims, now));
    }
    let requests: Vec<_> = overlay.requests.changes().map(|(id, _, row)| (id, row)).collect();
    if !requests.is_empty() {
        questions.push(request::insert(client, &requests, now));
    }
}

/// Rows that were not there, and rows that are not as they were.
fn split<'a, V: PartialEq + 'a>(
    changes: impl Iterator<Item = (Option<&'a V>, &'a V)>,
) -> (Vec<&'a V>, Vec<&'a V>) {
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for (before, row) in changes {
        match before {
            None => new.push(row),
            Some(before) if before == row => {}
            Some(_) => changed.push(row),
        }
    }
    (new, changed)
}

fn blobs<'a>(client: &'a Client, overlay: &Overlay, questions: &mut Vec<Question<'a>>) {
    let (new, changed) = split(overlay.blobs.changes().map(|(_, before, row)| (before, row)));
    // Changes first: a generation is condemned before the next one is in use.
    if !changed.is_empty() {
        questions.push(blob::update(client, &changed));
    }
    if !new.is_empty() {
        questions.push(blob::insert(client, &new));
    }
    questions.extend(blob::keepers(client, &overlay.keeping));
}

fn locks<'a>(client: &'a Client, overlay: &Overlay, questions: &mut Vec<Question<'a>>) {
    let (new, changed) = split(overlay.locks.changes().map(|(_, before, row)| (before, row)));
    if !new.is_empty() {
        questions.push(lock::insert(client, &new));
    }
    if !changed.is_empty() {
        questions.push(lock::update(client, &changed));
    }
    let queues: Vec<_> = overlay.locks.changes().map(|(_, before, row)| (before, row)).collect();
    questions.extend(lock::waiters(client, &queues));
    let grants: Vec<_> = overlay.lock_grants.changes().map(|(_, _, grant)| grant).collect();
    if !grants.is_empty() {
        questions.push(lock::put_grants(client, &grants));
    }
}

fn objects<'a>(client: &'a Client, overlay: &Overlay, questions: &mut Vec<Question<'a>>) {
    let (new, changed) = split(overlay.objects.changes().map(|(_, before, row)| (before, row)));
    if !new.is_empty() {
        questions.push(object::insert(client, &new));
    }
    if !changed.is_empty() {
        questions.push(object::update(client, &changed));
    }
}
