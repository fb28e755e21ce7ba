//! What the small worlds share: an engine with a job in it, people with names, and what makes two
//! engines the same.

use std::collections::BTreeMap;

use palisade_core::{
    Digest, JobId, LeaseId, Number, Tenant, Timestamp, blob::BlobState, job::Job, lease::Pair,
    lock::Lock, outbox::Endpoint, outbox::EndpointId, outbox::EventType, outbox::Secret,
    outbox::Standing, retry::RetryPolicy, transition::Wish,
};
use palisade_store::command::{
    Answer, BeginBlob, Claim, Command, Complete, CreateEndpoint, FinishBlob, Heartbeat,
    LeaseDeliveries, LeasedDeliveries, Pin, Submit, ToDeliver,
};
use palisade_store::tables::Keeper;

use crate::{
    engine::{CrashEngine, Engine},
    sabotage::Sabotage,
    sim::{capability, manifest_of, spec_of},
};

use super::search::Fingerprint;

/// When a small world begins.
pub(super) const BEGIN: Timestamp = Timestamp(1_000_000);
/// How long its leases are, in ms.
pub(super) const TTL_MS: u64 = 10_000;

/// Small budgets, so that they are used up within a small world.
pub(super) const RETRY: RetryPolicy =
    RetryPolicy { failures_allowed: 2, losses_allowed: 1, backoff_ms: 0, backoff_ms_max: 0 };

/// An empty engine.
pub(super) fn engine(broken: Option<Sabotage>) -> CrashEngine {
    CrashEngine::new(BEGIN, broken)
}

/// A wish for a rendering.
pub(super) fn submit(rendering: u64, request: &str) -> Command {
    let wish = Wish {
        tenant: Tenant::default_tenant(),
        spec: spec_of(rendering),
        retry: RETRY,
        backup_after_ms: None,
        priority: 0,
        run_at: Timestamp::default(),
        fresh: false,
        publish: None,
    };
    Command::Submit(Submit { wish, request_id: request.parse().ok() })
}

/// Submits, durably; the job's id.
pub(super) fn submitted(engine: &mut dyn Engine, rendering: u64) -> JobId {
    let asked = submit(rendering, &format!("r{rendering}"));
    let Ok(Answer::Submit(submitted)) = engine.apply(&asked, BEGIN) else {
        panic!("an empty store takes a wish")
    };
    engine.commit();
    submitted.job
}

/// What a worker makes.
pub(super) fn content_of(worker: usize) -> Digest {
    Digest::of(format!("worker {worker}'s film").as_bytes())
}

/// Makes a blob present, pinned for ever.
pub(super) fn present(engine: &mut CrashEngine, digest: Digest) {
    let pin = Pin::Until(Timestamp(Number::MAX.get()));
    let begin = Command::BeginBlob(BeginBlob { digest, pin });
    let Ok(Answer::BeginBlob(place)) = engine.apply(&begin, BEGIN) else {
        panic!("an empty store takes a blob")
    };
    let generation = place.generation;
    let finish = FinishBlob { digest, generation, size_bytes: 1 };
    engine.apply(&Command::FinishBlob(finish), BEGIN).expect("it was just begun");
    engine.commit();
}

/// How long a row of the outbox is somebody's, in ms.
pub(super) const DELIVERY_MS: u64 = 10_000;

/// Somebody wants to be told of every end of a job.
pub(super) fn endpoint(engine: &mut CrashEngine) {
    let endpoint = Endpoint {
        id: EndpointId(1),
        tenant: Tenant::default_tenant(),
        url: "https://customer.example/hook".to_owned(),
        events: [EventType::Completed, EventType::Failed, EventType::Cancelled].into(),
        secret: Secret::new([7; 32]),
        previous: None,
        created_at: BEGIN,
    };
    let create = Command::CreateEndpoint(CreateEndpoint { endpoint });
    engine.apply(&create, BEGIN).expect("an empty store takes an endpoint");
    engine.commit();
}

/// Asks for one row that is due.
pub(super) fn lease_one(engine: &mut CrashEngine, now: Timestamp) -> Option<ToDeliver> {
    // Tries only rise, and each lease is one: so the id was never used before.
    let tries: u32 = engine.live.outbox.values().map(|row| row.tries).sum();
    let lease_ids = vec![LeaseId(u128::from(tries) + 1)];
    let ttl_ms = DELIVERY_MS;
    let asked = LeaseDeliveries { lease_ids, endpoint_max: 4, ttl_ms };
    match engine.apply(&Command::LeaseDeliveries(asked), now) {
        Ok(Answer::LeaseDeliveries(LeasedDeliveries { leased, .. })) => leased.into_iter().next(),
        _ => None,
    }
}

/// A worker's claim. The same number is the same claim, asked again.
pub(super) fn claim(worker: usize, number: u64, seq: u64) -> Claim {
    Claim {
        worker: format!("worker-{worker}").parse().expect("a fine name"),
        session: session(worker).parse().expect("a fine id"),
        request_id: format!("c{worker}-{number}").parse().expect("a fine id"),
        seq,
        ttl_ms: TTL_MS,
        capabilities: vec![capability()],
        lease_ids: vec![LeaseId(1_000 * (worker as u128 + 1) + u128::from(number))],
    }
}

/// A worker's session.
pub(super) fn session(worker: usize) -> String {
    format!("s{worker}")
}

/// A worker's heartbeat.
pub(super) fn heartbeat(worker: usize, seq: u64, leases: Vec<(JobId, Pair)>) -> Heartbeat {
    let session = session(worker).parse().expect("a fine id");
    Heartbeat { session, seq, leases, pending: Vec::new(), pauses: Vec::new() }
}

/// A commit.
pub(super) fn complete(job: JobId, pair: Pair, content: Digest) -> Command {
    Command::Complete(Complete { job, pair, manifest: manifest_of(content) })
}

/// What makes two engines the same: everything but the journal.
pub(super) fn identify(engine: &CrashEngine, into: &mut Fingerprint) {
    // What is not dirty is durable: the same twice says nothing.
    let durable = engine.is_dirty().then_some(&engine.durable);
    into.take(&durable.is_some());
    for records in std::iter::once(&engine.live).chain(durable) {
        into.take(&(records.counter, records.life, records.clock));
        for job in records.jobs.values() {
            identify_job(job, into);
        }
        for blob in records.blobs.values() {
            let present = blob.state == BlobState::Present;
            let condemned = blob.state == BlobState::Condemned;
            into.take(&(blob.digest, blob.generation, present, condemned));
        }
        for (keeper, digest, generation) in &records.keepers {
            let keeper = match keeper {
                Keeper::Output(job) => (0, job.0.get()),
                Keeper::Input(job) => (1, job.0.get()),
                Keeper::Attempt(token) => (2, token.get()),
                Keeper::Until(until) => (3, until.0),
                Keeper::Object(version) => (4, version.get()),
            };
            into.take(&(keeper, digest, generation));
        }
        for ((_, request), recorded) in &records.requests {
            into.take(&(request, &recorded.answer));
        }
    }
    for records in std::iter::once(&engine.live).chain(durable) {
        for lock in records.locks.values() {
            identify_lock(lock, into);
        }
        for grant in records.lock_grants.values() {
            into.take(&(grant.pair, grant.closed.map(|(_, how)| how as u8)));
        }
        for row in records.outbox.values() {
            let lease_id = match row.standing {
                Standing::Leased(lease_id) => Some(lease_id),
                Standing::Pending | Standing::Delivered | Standing::Dead => None,
            };
            let notice = (row.number, row.notice.job, row.notice.seq, row.notice.event);
            into.take(&(notice, row.standing.as_str(), lease_id, row.due_at, row.tries));
        }
        into.take(&records.publications_due);
        for case in records.cases.values() {
            into.take(&(case.generation, case.stage as u8, case.since));
        }
        for object in records.objects.values() {
            into.take(&(object.fence, object.last.number, object.last.op, object.last.version));
            into.take(&object.is_readable());
        }
    }
    for held in engine.book.all() {
        into.take(&(held.token, held.lease.deadline, held.lease.renewed_at, held.lease.life));
    }
}

fn identify_lock(lock: &Lock, into: &mut Fingerprint) {
    into.take(&lock.fence);
    let held = lock.holding.as_ref();
    into.take(&held.map(|held| (held.token, &held.request_id, held.lease.deadline)));
    into.take(&held.map(|held| held.lease.life));
    for waiter in &lock.waiters {
        into.take(&(waiter.ticket, &waiter.request_id, waiter.wants_until, waiter.alive_until));
    }
}

fn identify_job(job: &Job, into: &mut Fingerprint) {
    into.take(&(job.id, job.state, job.run_at, job.fence, job.failures, job.losses));
    for attempt in &job.attempts {
        let closed = attempt.closed.as_ref().map(|closed| closed.reason);
        into.take(&(attempt.token, attempt.lease_id, closed));
        into.take(&(attempt.lease.deadline, attempt.lease.life));
    }
    for submission in &job.submissions {
        let publication = submission.publication_state();
        into.take(&(submission.number, submission.withdrawn_at.is_some(), publication));
    }
    let made: Option<BTreeMap<_, _>> = job.completion.as_ref().map(|completion| {
        completion.manifest.outputs.iter().map(|output| (&output.name, output.digest)).collect()
    });
    into.take(&(job.completed_by(), made));
}
