//! What the operations asked for and the transaction has not fetched yet.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    Digest, JobId, LockName, Number, ObjectKey, RequestId, SessionId, Tenant, Timestamp,
    outbox::EndpointId, spec::JobKey,
};

use crate::{command::Capability, tables::Scope};

/// Which of the jobs with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    /// The one that is queued or running.
    Live,
    /// The newest that is complete.
    Complete,
    /// The newest that is over, however it ended.
    Over,
}

/// A tenant's key. Ordered, so that rows are locked in one order by everybody.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnKey {
    pub(super) key: Digest,
    pub(super) tenant: Tenant,
}

impl OwnKey {
    pub(super) fn new(tenant: &Tenant, key: JobKey) -> Self {
        Self { key: key.0, tenant: tenant.clone() }
    }
}

/// Rows to fetch. Each set is one statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct Wants {
    pub(super) jobs: BTreeSet<JobId>,
    pub(super) keys: BTreeSet<(Which, OwnKey)>,
    /// So many due jobs of each capability.
    pub(super) due: BTreeMap<Capability, usize>,
    /// So many lapsed jobs of each capability.
    pub(super) lapsed: BTreeMap<Capability, usize>,
    /// So many jobs of each capability that may get a backup.
    pub(super) backups: BTreeMap<Capability, usize>,
    /// Lapsed jobs that are given up.
    pub(super) spent: bool,
    /// When time alone will make something claimable.
    pub(super) next: BTreeSet<Capability>,
    /// All leases of a job.
    pub(super) job_leases: BTreeSet<JobId>,
    pub(super) leases: BTreeSet<Number>,
    /// A session's leases, and its heartbeats.
    pub(super) sessions: BTreeSet<SessionId>,
    pub(super) pauses: BTreeSet<(Number, u64)>,
    pub(super) claims: BTreeSet<(SessionId, RequestId)>,
    pub(super) requests: BTreeSet<(Scope, RequestId)>,
    pub(super) blobs: BTreeSet<Digest>,
    pub(super) tokens: BTreeSet<Number>,
    pub(super) locks: BTreeSet<LockName>,
    pub(super) overdue_locks: bool,
    pub(super) lock_grants: BTreeSet<Number>,
    /// The newest grant of a lock to a request.
    pub(super) grants_of: BTreeSet<(LockName, RequestId)>,
    /// Grants that ended long enough ago to be forgotten.
    pub(super) spent_grants: bool,
    pub(super) objects: BTreeSet<ObjectKey>,
    pub(super) generations: BTreeSet<Number>,
    /// So many of a generation's keepers.
    pub(super) kept: BTreeMap<Number, usize>,
    pub(super) cases: BTreeSet<Number>,
    /// All endpoints.
    pub(super) endpoints: bool,
    /// Nobody else may look at the endpoints meanwhile: one of them changes.
    pub(super) endpoints_alone: bool,
    pub(super) deliveries: BTreeSet<Number>,
    /// All of a job's deliveries to an endpoint that are open.
    pub(super) open_deliveries: BTreeSet<(EndpointId, JobId)>,
    /// So many due deliveries to each endpoint.
    pub(super) due_deliveries: usize,
    /// How many deliveries to each endpoint somebody tries.
    pub(super) busy_deliveries: bool,
    /// So many deliveries that become due, the next first.
    pub(super) next_deliveries: usize,
    /// So many publications that are due.
    pub(super) publications: usize,
    /// Whether these jobs are live.
    pub(super) lives: BTreeSet<JobId>,
    /// So many of the journal's chunks after a position.
    pub(super) chunks: BTreeMap<u64, usize>,
    /// So many of the first answers, and of the claims, given before an instant.
    pub(super) old_requests: BTreeMap<Timestamp, usize>,
    pub(super) old_claims: BTreeMap<Timestamp, usize>,
    /// So many numbers, all drawn anew after the rows.
    pub(super) numbers: usize,
}

impl Wants {
    /// Whether nothing is missing.
    pub(super) fn is_empty(&self) -> bool {
        let rows = self.jobs.len()
            + self.keys.len()
            + self.due.len()
            + self.lapsed.len()
            + self.backups.len()
            + self.next.len()
            + self.job_leases.len()
            + self.leases.len()
            + self.sessions.len()
            + self.pauses.len()
            + self.claims.len()
            + self.requests.len()
            + self.blobs.len()
            + self.tokens.len()
            + self.locks.len()
            + self.lock_grants.len()
            + self.grants_of.len()
            + self.objects.len();
        rows + self.numbers == 0
            && !self.spent
            && !self.overdue_locks
            && !self.spent_grants
            && self.no_effects()
    }

    fn no_effects(&self) -> bool {
        let rows = self.generations.len()
            + self.kept.len()
            + self.cases.len()
            + self.deliveries.len()
            + self.open_deliveries.len()
            + self.due_deliveries
            + self.next_deliveries
            + self.publications
            + self.lives.len()
            + self.chunks.len()
            + self.old_requests.len()
            + self.old_claims.len();
        rows == 0 && !self.endpoints && !self.endpoints_alone && !self.busy_deliveries
    }

    /// Wants so many of something, or as many as it wanted already.
    pub(super) fn at_least<K: Ord + Clone>(wanted: &mut BTreeMap<K, usize>, of: &K, count: usize) {
        let place = wanted.entry(of.clone()).or_default();
        *place = count.max(*place);
    }

    /// Remembers rows that a try found out to need: the next try locks them from the beginning, in
    /// the order in which everybody locks, so that two tries cannot wait for each other twice.
    pub(super) fn learn(&mut self, found_out: &Self) {
        self.jobs.extend(found_out.jobs.iter().copied());
        self.job_leases.extend(found_out.job_leases.iter().copied());
        self.leases.extend(found_out.leases.iter().copied());
        self.locks.extend(found_out.locks.iter().cloned());
        self.objects.extend(found_out.objects.iter().cloned());
        self.blobs.extend(found_out.blobs.iter().copied());
        self.generations.extend(found_out.generations.iter().copied());
        self.cases.extend(found_out.cases.iter().copied());
        self.deliveries.extend(found_out.deliveries.iter().copied());
        self.open_deliveries.extend(found_out.open_deliveries.iter().copied());
    }
}
