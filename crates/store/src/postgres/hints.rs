//! What a command will most likely ask for: fetched before it runs, so that one round of fetching
//! is nearly always enough. A hint too few costs a round, a hint too many a row; neither changes
//! what an operation comes to.

use palisade_core::lease::Pair;

use crate::{
    command::{Claim, Command, Heartbeat, Pin, Submit},
    tables::Scope,
};

use super::wants::{OwnKey, Wants, Which};

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
            job(wants, asked.job);
            wants.blobs.extend(asked.manifest.outputs.iter().map(|output| output.digest));
        }
        Command::Fail(asked) => job(wants, asked.job),
        Command::Release(asked) => job(wants, asked.job),
        Command::Cancel(asked) => {
            job(wants, asked.job);
            wants
                .requests
                .extend(asked.request_id.iter().map(|id| (Scope::Job(asked.job), id.clone())));
        }
        Command::Retry(asked) => {
            job(wants, asked.job);
            wants
                .requests
                .extend(asked.request_id.iter().map(|id| (Scope::Job(asked.job), id.clone())));
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
        Command::AcquireLock(asked) => lock(wants, &asked.name),
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
        Command::Tick => {
            wants.spent = true;
            wants.overdue_locks = true;
        }
    }
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
