//! One round of fetching: what is wanted becomes questions, sent together; the answers go into the
//! overlay. The numbers are drawn last, after every row was locked.
//!
//! The order of the questions is the order in which everybody locks: jobs, leases, locks, objects,
//! blobs, each by its key. So servers wait for each other, but not in a circle.

use std::collections::BTreeMap;

use deadpool_postgres::Client;
use palisade_core::{JobId, LockName, Number, lock::{Lock, Waiter}};
use tokio_postgres::Row;

use crate::{command::Capability, fault::Fault};

use super::{
    life::{ClockRow, LIFE_LOCK},
    overlay::{Next, Overlay},
    records::{blob, claim, job, lease, lock, object, request, session},
    session::{Question, pipeline, question},
    trouble::Trouble,
    values::{Columns, count, number},
    wants::{OwnKey, Wants, Which},
};

const BEGIN: &str = "BEGIN";
const SHARE: &str = "SELECT pg_advisory_xact_lock_shared($1::bigint)";
/// The clock's row, and what the wall says.
pub(super) const CLOCK: &str = "SELECT clock_ms, ahead_ms, life, \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM clock";
const DRAW: &str = "SELECT nextval('counter') FROM generate_series(1, $1::bigint)";

/// What is introduced to each connection.
pub(super) const ALL: &[&str] = &[BEGIN, SHARE, CLOCK, DRAW];

/// What an answer is to.
enum About {
    Jobs(Vec<JobId>),
    Keys(Which, Vec<OwnKey>),
    Due(Capability, usize),
    Lapsed(Capability, usize),
    Backups(Capability, usize),
    Spent,
    NextDue(Capability),
    NextLease(Capability),
    LeasesOfJobs(Vec<JobId>),
    Leases(Vec<Number>),
    LeasesOfSessions,
    Beats(Vec<palisade_core::SessionId>),
    Pauses(Vec<(Number, u64)>),
    Claims(Vec<(palisade_core::SessionId, palisade_core::RequestId)>),
    Requests(Vec<(crate::tables::Scope, palisade_core::RequestId)>),
    Locks(Vec<LockName>),
    Waiters,
    Overdue,
    Grants(Vec<Number>),
    Objects(Vec<palisade_core::ObjectKey>),
    Blobs(Vec<palisade_core::Digest>),
    Tokens(Vec<Number>),
    Numbers,
    Clock,
    Nothing,
}

/// Questions with what they are about.
struct Round<'a> {
    client: &'a Client,
    about: Vec<About>,
    questions: Vec<Question<'a>>,
}

impl<'a> Round<'a> {
    fn ask(&mut self, about: About, question: Question<'a>) {
        self.about.push(about);
        self.questions.push(question);
    }
}

/// Whether rows are locked in the common order, or after others were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The transaction's first round: it waits for rows that others have.
    First,
    /// A later one: rows that others have make it begin again.
    Later,
}

/// Fetches what is wanted. `now` is what the clock is known to have reached.
pub(super) async fn round(
    client: &Client,
    overlay: &mut Overlay,
    wants: &Wants,
    (turn, now): (Turn, i64),
) -> Result<ClockRow, Trouble> {
    let mut round = Round { client, about: Vec::new(), questions: Vec::new() };
    if turn == Turn::First {
        round.ask(About::Nothing, question!(client, BEGIN));
        round.ask(About::Nothing, question!(client, SHARE, LIFE_LOCK));
    }
    ask_jobs(&mut round, overlay, wants, (turn, now));
    ask_leases(&mut round, wants);
    ask_rest(&mut round, wants, now);
    // After the last row was locked, so that no decision is older than what it rests on.
    round.ask(About::Clock, question!(client, CLOCK));
    let Round { about, questions, .. } = round;
    let (mut locks, mut clock) = (BTreeMap::new(), None);
    for (about, answer) in about.into_iter().zip(pipeline(questions).await) {
        let rows = answer.map_err(Trouble::before_commit)?;
        if let About::Clock = about {
            clock = Some(ClockRow::decode(&rows[0]).map_err(Trouble::Fault)?);
        } else {
            take_in(overlay, &mut locks, about, &rows).map_err(Trouble::Fault)?;
        }
    }
    for (name, lock) in locks {
        overlay.fetched_lock(name, Some(lock));
    }
    Ok(clock.expect("it was asked for"))
}

fn ask_jobs<'a>(
    round: &mut Round<'a>,
    overlay: &Overlay,
    wants: &Wants,
    (turn, now): (Turn, i64),
) {
    let client = round.client;
    if !wants.jobs.is_empty() {
        let sql = match turn {
            Turn::First => job::BY_ID,
            Turn::Later => job::BY_ID_AT_ONCE,
        };
        let ids: Vec<_> = wants.jobs.iter().map(|id| job::id(*id)).collect();
        round.ask(About::Jobs(wants.jobs.iter().copied().collect()), question!(client, sql, ids));
    }
    for (which, sql) in
        [(Which::Live, job::LIVE), (Which::Complete, job::COMPLETE), (Which::Over, job::OVER)]
    {
        let of_which = wants.keys.iter().filter(|(of, _)| *of == which);
        let keys: Vec<_> = of_which.map(|(_, own)| own.clone()).collect();
        if !keys.is_empty() {
            let digests: Vec<_> = keys.iter().map(|own| own.key.as_bytes().to_vec()).collect();
            let tenants: Vec<_> = keys.iter().map(|own| own.tenant.to_string()).collect();
            round.ask(About::Keys(which, keys), question!(client, sql, digests, tenants));
        }
    }
    if wants.spent {
        round.ask(About::Spent, lease::spent(client, now));
    }
    for (capability, limit) in &wants.lapsed {
        let asked = lease::look(client, lease::Look::Lapsed, capability, (now, count(*limit)));
        round.ask(About::Lapsed(capability.clone(), *limit), asked);
    }
    for (capability, limit) in &wants.due {
        let (recipe, definition) = capability_columns(capability);
        let asked = question!(client, job::DUE, recipe, definition, now, count(*limit));
        round.ask(About::Due(capability.clone(), *limit), asked);
    }
    for (capability, limit) in &wants.backups {
        let asked = lease::look(client, lease::Look::Backups, capability, (now, count(*limit)));
        round.ask(About::Backups(capability.clone(), *limit), asked);
    }
    for capability in &wants.next {
        let (recipe, definition) = capability_columns(capability);
        let known: Vec<_> =
            overlay.known_jobs(capability).into_iter().map(job::id).collect();
        let asked = question!(client, job::NEXT_DUE, recipe, definition, known, now);
        round.ask(About::NextDue(capability.clone()), asked);
        let known = overlay.lease_rows.keys().map(|token| number(*token)).collect();
        let asked = lease::next(client, capability, now, known);
        round.ask(About::NextLease(capability.clone()), asked);
    }
}

fn capability_columns(capability: &Capability) -> (String, Vec<u8>) {
    (capability.recipe.to_string(), capability.definition.as_bytes().to_vec())
}

fn ask_leases(round: &mut Round<'_>, wants: &Wants) {
    let client = round.client;
    let texts = |names: &mut dyn Iterator<Item = String>| names.collect::<Vec<_>>();
    if !wants.job_leases.is_empty() {
        let jobs: Vec<_> = wants.job_leases.iter().copied().collect();
        let asked = lease::by_job(client, jobs.iter().map(|id| job::id(*id)).collect());
        round.ask(About::LeasesOfJobs(jobs), asked);
    }
    if !wants.leases.is_empty() {
        let tokens: Vec<_> = wants.leases.iter().copied().collect();
        let asked = lease::by_token(client, tokens.iter().map(|one| number(*one)).collect());
        round.ask(About::Leases(tokens), asked);
    }
    if !wants.sessions.is_empty() {
        let sessions: Vec<_> = wants.sessions.iter().cloned().collect();
        let names = texts(&mut sessions.iter().map(ToString::to_string));
        round.ask(About::LeasesOfSessions, lease::by_session(client, names.clone()));
        round.ask(About::Beats(sessions), session::beats(client, names));
    }
    if !wants.pauses.is_empty() {
        let pauses: Vec<_> = wants.pauses.iter().copied().collect();
        let asked = session::pauses(client, &pauses);
        round.ask(About::Pauses(pauses), asked);
    }
}

fn ask_rest(round: &mut Round<'_>, wants: &Wants, now: i64) {
    let client = round.client;
    if !wants.claims.is_empty() {
        let asked = claim::find(client, &wants.claims.iter().collect::<Vec<_>>());
        round.ask(About::Claims(wants.claims.iter().cloned().collect()), asked);
    }
    if !wants.requests.is_empty() {
        let asked = request::find(client, &wants.requests.iter().collect::<Vec<_>>());
        round.ask(About::Requests(wants.requests.iter().cloned().collect()), asked);
    }
    if wants.overdue_locks {
        round.ask(About::Overdue, lock::overdue(client, now));
    }
    if !wants.locks.is_empty() {
        let names = wants.locks.iter().map(ToString::to_string).collect();
        let [locks, waiters] = lock::find(client, names);
        round.ask(About::Locks(wants.locks.iter().cloned().collect()), locks);
        round.ask(About::Waiters, waiters);
    }
    if !wants.lock_grants.is_empty() {
        let tokens: Vec<_> = wants.lock_grants.iter().copied().collect();
        let asked = lock::grants(client, tokens.iter().map(|one| number(*one)).collect());
        round.ask(About::Grants(tokens), asked);
    }
    if !wants.objects.is_empty() {
        let asked = object::find(client, wants.objects.iter().map(ToString::to_string).collect());
        round.ask(About::Objects(wants.objects.iter().cloned().collect()), asked);
    }
    if !wants.blobs.is_empty() {
        let digests = wants.blobs.iter().map(|digest| digest.as_bytes().to_vec()).collect();
        round.ask(About::Blobs(wants.blobs.iter().copied().collect()), blob::newest(client, digests));
    }
    if !wants.tokens.is_empty() {
        let tokens: Vec<_> = wants.tokens.iter().copied().collect();
        let asked = job::of_tokens(client, tokens.iter().map(|one| number(*one)).collect());
        round.ask(About::Tokens(tokens), asked);
    }
    if wants.numbers > 0 {
        // Last: a number drawn after a row was locked is above every number that was drawn for
        // that row before, because whoever drew it had the lock, and has committed. So tokens rise
        // for each resource, whichever server grants, though numbers of different resources may
        // overtake each other.
        round.ask(About::Numbers, question!(client, DRAW, count(wants.numbers)));
    }
}

/// Takes in the rows of one answer.
fn take_in(
    overlay: &mut Overlay,
    locks: &mut BTreeMap<LockName, Lock>,
    about: About,
    rows: &[Row],
) -> Result<(), Fault> {
    match about {
        About::Jobs(_)
        | About::Keys(..)
        | About::Due(..)
        | About::Lapsed(..)
        | About::Backups(..)
        | About::Spent => return take_in_jobs(overlay, about, rows),
        About::NextDue(capability) => {
            let columns = Columns::new("job", &rows[0]);
            let (run_at, due_elsewhere) = (columns.optional_instant(0)?, columns.get(1)?);
            let next = Next { run_at, due_elsewhere, ..Next::default() };
            overlay.fetched_next(capability, next);
        }
        About::NextLease(capability) => {
            let columns = Columns::new("lease", &rows[0]);
            let (lapses, backup) = (columns.optional_instant(0)?, columns.optional_instant(1)?);
            overlay.fetched_next_lease(&capability, lapses, backup);
        }
        About::LeasesOfJobs(jobs) => {
            take_in_leases(overlay, rows)?;
            overlay.fetched_whole(jobs);
        }
        About::Leases(tokens) => {
            take_in_leases(overlay, rows)?;
            overlay.fetched_tokens(tokens);
        }
        About::LeasesOfSessions => take_in_leases(overlay, rows)?,
        About::Beats(sessions) => {
            let beats = rows.iter().map(session::decode_beat).collect::<Result<BTreeMap<_, _>, _>>()?;
            for session in sessions {
                let seq = beats.get(&session).copied();
                overlay.fetched_session(session, seq);
            }
        }
        About::Pauses(asked) => {
            let known = rows.iter().map(session::decode_pause).collect::<Result<Vec<_>, _>>()?;
            for pause in asked {
                overlay.pauses.fetch(pause, known.contains(&pause).then_some(()));
            }
        }
        About::Claims(asked) => {
            let mut known = rows.iter().map(claim::decode).collect::<Result<BTreeMap<_, _>, _>>()?;
            for claim in asked {
                let grants = known.remove(&claim);
                overlay.claims.fetch(claim, grants);
            }
        }
        About::Requests(asked) => take_in_requests(overlay, asked, rows)?,
        About::Locks(asked) => {
            let found = rows.iter().map(lock::decode).collect::<Result<Vec<_>, _>>()?;
            for name in asked {
                overlay.fetched_lock(name, None);
            }
            locks.extend(found.into_iter().map(|lock| (lock.name.clone(), lock)));
        }
        About::Waiters => {
            for row in rows {
                let (name, waiter): (LockName, Waiter) = lock::decode_waiter(row)?;
                if let Some(lock) = locks.get_mut(&name) {
                    lock.waiters.push(waiter);
                }
            }
        }
        About::Overdue => {
            let names = rows.iter().map(|row| Columns::new("lock", row).parsed(0));
            overlay.fetched_overdue_locks(names.collect::<Result<_, _>>()?);
        }
        About::Grants(tokens) => {
            let found = rows.iter().map(lock::decode_grant).collect::<Result<Vec<_>, _>>()?;
            tokens.into_iter().for_each(|token| overlay.lock_grants.fetch(token, None));
            for grant in found {
                overlay.lock_grants.fetch(grant.pair.token, Some(grant));
            }
        }
        About::Objects(keys) => {
            keys.into_iter().for_each(|key| overlay.objects.fetch(key, None));
            for row in rows {
                let object = object::decode(row)?;
                overlay.objects.fetch(object.key.clone(), Some(object));
            }
        }
        About::Blobs(digests) => {
            digests.into_iter().for_each(|digest| overlay.fetched_blob(digest, None));
            for row in rows {
                let blob = blob::decode(row)?;
                overlay.fetched_blob(blob.digest, Some(blob));
            }
        }
        About::Tokens(tokens) => {
            tokens.into_iter().for_each(|token| overlay.tokens.fetch(token, None));
            for row in rows {
                let columns = Columns::new("token", row);
                overlay.tokens.fetch(columns.number(0)?, Some(columns.job(1)?));
            }
        }
        About::Clock | About::Nothing => {}
        About::Numbers => {
            let drawn = rows.iter().map(|row| Columns::new("counter", row).number(0));
            overlay.fetched_numbers(drawn.collect::<Result<_, _>>()?);
        }
    }
    Ok(())
}

fn take_in_jobs(overlay: &mut Overlay, about: About, rows: &[Row]) -> Result<(), Fault> {
    let mut came = Vec::with_capacity(rows.len());
    if let About::Jobs(ids) = &about {
        ids.iter().for_each(|id| overlay.fetched_job(*id, None));
    }
    if let About::Keys(which, keys) = &about {
        keys.iter().for_each(|own| overlay.fetched_key(*which, own.clone(), None));
    }
    for row in rows {
        let (job, version) = job::decode(row)?;
        came.push(job.id);
        if let About::Keys(which, _) = &about {
            let own = OwnKey::new(&job.tenant, job.key);
            overlay.fetched_key(*which, own, Some(job.id));
        }
        overlay.fetched_job(job.id, Some((job, version)));
    }
    match about {
        About::Due(capability, asked) => overlay.fetched_due(&capability, asked, &came),
        About::Lapsed(capability, asked) => {
            overlay.fetched_lapsed(&capability, asked, &came);
        }
        About::Backups(capability, asked) => {
            overlay.fetched_backups(&capability, asked, &came);
        }
        About::Spent => overlay.fetched_spent(&came),
        _ => {}
    }
    Ok(())
}

fn take_in_leases(overlay: &mut Overlay, rows: &[Row]) -> Result<(), Fault> {
    for row in rows {
        overlay.fetched_lease(lease::decode(row)?);
    }
    Ok(())
}

fn take_in_requests(
    overlay: &mut Overlay,
    asked: Vec<(crate::tables::Scope, palisade_core::RequestId)>,
    rows: &[Row],
) -> Result<(), Fault> {
    let mut known = BTreeMap::new();
    for row in rows {
        let columns = Columns::new("request", row);
        let recorded = crate::tables::Recorded {
            fingerprint: columns.digest(2)?,
            answer: columns.get(3)?,
        };
        let key = (columns.text(0)?.to_owned(), columns.text(1)?.to_owned());
        known.insert(key, recorded);
    }
    for request in asked {
        let key = (request::scope_column(&request.0), request.1.to_string());
        let recorded = known.remove(&key);
        overlay.requests.fetch(request, recorded);
    }
    Ok(())
}
