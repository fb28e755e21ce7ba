//! One round of fetching: what is wanted becomes questions, sent together; the answers go into the
//! overlay. The numbers are drawn last, after every row was locked.
//!
//! The order of the questions is the order in which everybody locks: jobs, leases, locks, objects,
//! blobs, each by its key. So servers wait for each other, but not in a circle.

mod effects;
mod taking;

use std::collections::BTreeMap;

use deadpool_postgres::Client;
use palisade_core::{Digest, JobId, LockName, Number, ObjectKey, RequestId, SessionId, limits};

use crate::{command::Capability, tables::Scope};

use super::{
    life::{ClockRow, ENDPOINTS_LOCK, LIFE_LOCK},
    overlay::Overlay,
    records::{blob, claim, job, lease, lock, object, outbox, request, session},
    session::{Question, pipeline, question},
    trouble::Trouble,
    values::{count, number},
    wants::{OwnKey, Wants, Which},
};

const BEGIN: &str = "BEGIN";
const SHARE: &str = "SELECT pg_advisory_xact_lock_shared($1::bigint)";
const ALONE: &str = "SELECT pg_advisory_xact_lock($1::bigint)";
/// The clock's row, and what the wall says.
pub(super) const CLOCK: &str = "SELECT clock_ms, ahead_ms, life, \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM clock";
const DRAW: &str = "SELECT nextval('counter') FROM generate_series(1, $1::bigint)";

/// What is introduced to each connection.
pub(super) const ALL: &[&str] = &[BEGIN, SHARE, ALONE, CLOCK, DRAW];

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
    Beats(Vec<SessionId>),
    Pauses(Vec<(Number, u64)>),
    Claims(Vec<(SessionId, RequestId)>),
    Requests(Vec<(Scope, RequestId)>),
    Locks(Vec<LockName>),
    Waiters,
    Overdue,
    Grants(Vec<Number>),
    GrantsOf(Vec<(LockName, RequestId)>),
    SpentGrants,
    Objects(Vec<ObjectKey>),
    Blobs(Vec<Digest>),
    Tokens(Vec<Number>),
    Effect(effects::About),
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
    ask_endpoints(&mut round, wants);
    ask_jobs(&mut round, overlay, wants, (turn, now));
    ask_leases(&mut round, wants);
    ask_rest(&mut round, wants, now);
    effects::ask(&mut round, wants, now);
    ask_numbers(&mut round, wants);
    // After the last row was locked, so that no decision is older than what it rests on.
    round.ask(About::Clock, question!(client, CLOCK));
    let Round { about, questions, .. } = round;
    let (mut locks, mut clock) = (BTreeMap::new(), None);
    let rows_before = overlay.rows();
    for (about, answer) in about.into_iter().zip(pipeline(questions).await) {
        let rows = answer.map_err(Trouble::before_commit)?;
        if let About::Clock = about {
            clock = Some(ClockRow::decode(&rows[0]).map_err(Trouble::Fault)?);
        } else {
            taking::take_in(overlay, &mut locks, about, &rows).map_err(Trouble::Fault)?;
        }
    }
    for (name, lock) in locks {
        overlay.fetched_lock(name, Some(lock));
    }
    if overlay.rows() > rows_before {
        overlay.forget_next();
    }
    Ok(clock.expect("it was asked for"))
}

/// Whoever writes what endpoints are told shares them: none is removed meanwhile, so that no row is
/// left without its endpoint. A lock of its own, for one on their rows would be a write for each.
fn ask_endpoints(round: &mut Round<'_>, wants: &Wants) {
    let client = round.client;
    if wants.endpoints_alone {
        round.ask(About::Nothing, question!(client, ALONE, ENDPOINTS_LOCK));
    } else if wants.endpoints {
        round.ask(About::Nothing, question!(client, SHARE, ENDPOINTS_LOCK));
    }
    if wants.endpoints {
        round.ask(About::Effect(effects::About::Endpoints), outbox::endpoints(client));
    }
}

fn ask_jobs(round: &mut Round<'_>, overlay: &Overlay, wants: &Wants, (turn, now): (Turn, i64)) {
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
        let known: Vec<_> = overlay.known_jobs(capability).into_iter().map(job::id).collect();
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
    if !wants.grants_of.is_empty() {
        let of: Vec<_> = wants.grants_of.iter().cloned().collect();
        let asked = lock::grants_of(client, &of);
        round.ask(About::GrantsOf(of), asked);
    }
    if wants.spent_grants {
        let before = now.saturating_sub_unsigned(limits::LOCK_GRANT_KEPT_MS);
        round.ask(About::SpentGrants, lock::spent_grants(client, before));
    }
    if !wants.objects.is_empty() {
        let asked = object::find(client, wants.objects.iter().map(ToString::to_string).collect());
        round.ask(About::Objects(wants.objects.iter().cloned().collect()), asked);
    }
    if !wants.blobs.is_empty() {
        let digests = wants.blobs.iter().map(|digest| digest.as_bytes().to_vec()).collect();
        round.ask(
            About::Blobs(wants.blobs.iter().copied().collect()),
            blob::newest(client, digests),
        );
    }
    if !wants.tokens.is_empty() {
        let tokens: Vec<_> = wants.tokens.iter().copied().collect();
        let asked = job::of_tokens(client, tokens.iter().map(|one| number(*one)).collect());
        round.ask(About::Tokens(tokens), asked);
    }
}

fn ask_numbers(round: &mut Round<'_>, wants: &Wants) {
    if wants.numbers > 0 {
        let client = round.client;
        // Last: a number drawn after a row was locked is above every number that was drawn for
        // that row before, because whoever drew it had the lock, and has committed. So tokens rise
        // for each resource, whichever server grants, though numbers of different resources may
        // overtake each other.
        round.ask(About::Numbers, question!(client, DRAW, count(wants.numbers)));
    }
}
