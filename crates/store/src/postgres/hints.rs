//! What a command will most likely ask for: fetched before it runs, so that one round of fetching
//! is nearly always enough. A hint too few costs a round, a hint too many a row; neither changes
//! what an operation comes to.

use palisade_core::lease::Pair;

use crate::{
    command::{Claim, Command, Heartbeat, LeaseDeliveries, Pin, Submit},
    tables::Scope,
};

use super::{
    overlay::{KEPT_AT_ONCE, NEXT_AT_ONCE},
    wants::{OwnKey, Wants, Which},
};

/// Publications that a tick carries out, and one more, which tells whether there are more.
const PUBLICATIONS: usize = 17;

/// What all commands of a batch will ask for.
pub(super) fn of(commands: &[Command]) -> Wants {
    let mut wants = Wants::default();
    for command in commands {
        add(&mut wants, command);
    }
    wants
}

fn add(wants: &mut Wants, command: &Command) {
    match command {
        Command::Submit(asked) => submit(wants, asked),
        Command::Claim(asked) => claim(wants, asked),
        Command::Heartbeat(asked) => heartbeat(wants, asked),
        Command::Complete(asked) => {
            ends(wants, asked.job);
            wants.blobs.extend(asked.manifest.outputs.iter().map(|output| output.digest));
        }
        Command::Fail(asked) => ends(wants, asked.job),
        Command::Release(asked) => ends(wants, asked.job),
        Command::HandBack(asked) => ends(wants, asked.job),
        Command::Cancel(asked) => {
            ends(wants, asked.job);
            let scope = Scope::Job(asked.job);
            wants.requests.extend(asked.request_id.iter().map(|id| (scope.clone(), id.clone())));
        }
        Command::Retry(asked) => {
            job(wants, asked.job);
            let scope = Scope::Job(asked.job);
            wants.requests.extend(asked.request_id.iter().map(|id| (scope.clone(), id.clone())));
        }
        Command::BeginBlob(asked) => {
            wants.blobs.insert(asked.digest);
            wants.numbers += 1;
            if let Pin::Attempt(_, pair) = asked.pin {
                wants.leases.insert(pair.token);
            }
        }
        Command::FinishBlob(asked) => {
            wants.blobs.insert(asked.digest);
        }
        Command::Suspect(asked) => {
            wants.sessions.insert(asked.session.clone());
        }
        Command::Tick => {
            wants.spent = true;
            wants.overdue_locks = true;
            wants.spent_grants = true;
            wants.publications = wants.publications.max(PUBLICATIONS);
        }
        other => add_effect(wants, other),
    }
}

/// The same of what surrounds the jobs.
fn add_effect(wants: &mut Wants, command: &Command) {
    match command {
        Command::AcquireLock(asked) => {
            lock(wants, &asked.name);
            wants.grants_of.insert((asked.name.clone(), asked.wish.request_id.clone()));
        }
        Command::RenewLock(asked) => lock(wants, &asked.name),
        Command::ReleaseLock(asked) => {
            lock(wants, &asked.name);
            wants.lock_grants.insert(asked.pair.token);
        }
        Command::LeaveLock(asked) => lock(wants, &asked.name),
        Command::PutObject(asked) => {
            wants.blobs.insert(asked.digest);
            wants.objects.insert(asked.key.clone());
            holder(wants, &asked.pair);
        }
        Command::DeleteObject(asked) => {
            wants.objects.insert(asked.key.clone());
            holder(wants, &asked.pair);
        }
        Command::RaiseObject(asked) => {
            wants.objects.insert(asked.key.clone());
            holder(wants, &asked.pair);
        }
        Command::Collect(asked) => {
            for (_, generation) in &asked.blobs {
                wants.generations.insert(*generation);
                wants.cases.insert(*generation);
                wants.kept.insert(*generation, KEPT_AT_ONCE);
            }
        }
        Command::MarkCleared(asked) => {
            wants.cases.extend(asked.places.iter().map(|(_, generation)| *generation));
        }
        Command::ForgetBlobs(asked) => {
            let generations = asked.places.iter().map(|(_, generation)| *generation);
            // Locked in the common order, blobs first.
            wants.generations.extend(generations.clone());
            wants.cases.extend(generations);
        }
        Command::ReleaseJobs(asked) => asked.jobs.iter().for_each(|id| job(wants, *id)),
        Command::Publish(asked) => {
            wants.publications = wants.publications.max(asked.limit.saturating_add(1));
        }
        other => add_notifications(wants, other),
    }
}

/// The same of notifications. What is left concerns what is old, and comes seldom: it may cost
/// rounds.
fn add_notifications(wants: &mut Wants, command: &Command) {
    match command {
        Command::CreateEndpoint(_) | Command::RotateSecret(_) | Command::DeleteEndpoint(_) => {
            wants.endpoints = true;
            wants.endpoints_alone = true;
        }
        Command::LeaseDeliveries(asked) => lease_deliveries(wants, asked),
        Command::SettleDelivery(asked) => {
            wants.deliveries.insert(asked.id.number);
        }
        Command::Redeliver(asked) => {
            wants.deliveries.insert(asked.id.number);
        }
        Command::TellProgress(asked) => {
            wants.endpoints = true;
            for (id, pair, _) in &asked.renders {
                job(wants, *id);
                wants.leases.insert(pair.token);
            }
        }
        _ => {}
    }
}

fn lease_deliveries(wants: &mut Wants, asked: &LeaseDeliveries) {
    let room = asked.endpoint_max.min(asked.lease_ids.len()).max(1);
    wants.endpoints = true;
    wants.busy_deliveries = true;
    wants.due_deliveries = wants.due_deliveries.max(room);
    wants.next_deliveries = wants.next_deliveries.max(NEXT_AT_ONCE);
}

/// A job that may end, so that somebody may have to be told.
fn ends(wants: &mut Wants, id: palisade_core::JobId) {
    job(wants, id);
    wants.endpoints = true;
}

fn job(wants: &mut Wants, id: palisade_core::JobId) {
    wants.jobs.insert(id);
    wants.job_leases.insert(id);
}

fn lock(wants: &mut Wants, name: &palisade_core::LockName) {
    wants.locks.insert(name.clone());
    wants.numbers += 1;
}

/// Whoever shows a pair at an object may hold a job or a lock.
fn holder(wants: &mut Wants, pair: &Pair) {
    wants.leases.insert(pair.token);
    wants.lock_grants.insert(pair.token);
    wants.numbers += 1;
}

fn submit(wants: &mut Wants, asked: &Submit) {
    let Submit { wish, request_id } = asked;
    let own = OwnKey::new(&wish.tenant, wish.spec.key());
    if !wish.fresh {
        wants.keys.insert((Which::Complete, own.clone()));
        // Answered by a job that is complete, it is told of at once.
        wants.endpoints = true;
    }
    wants.keys.insert((Which::Live, own));
    let scope = Scope::Tenant(wish.tenant.clone());
    wants.requests.extend(request_id.iter().map(|id| (scope.clone(), id.clone())));
    wants.blobs.extend(wish.spec.inputs.values().map(|input| input.digest));
    wants.numbers += 1;
}

fn claim(wants: &mut Wants, asked: &Claim) {
    wants.claims.insert((asked.session.clone(), asked.request_id.clone()));
    let room = asked.lease_ids.len();
    for capability in &asked.capabilities {
        *wants.due.entry(capability.clone()).or_default() += room;
        *wants.lapsed.entry(capability.clone()).or_default() += room;
        *wants.backups.entry(capability.clone()).or_default() += room;
    }
    wants.numbers += room;
}

fn heartbeat(wants: &mut Wants, asked: &Heartbeat) {
    wants.sessions.insert(asked.session.clone());
    wants.leases.extend(asked.leases.iter().map(|(_, pair)| pair.token));
    for (id, pair, pause_ms) in &asked.pauses {
        job(wants, *id);
        wants.pauses.insert((pair.token, *pause_ms));
    }
}
