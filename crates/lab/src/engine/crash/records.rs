//! The records, cheap to copy: a job is shared until it changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    rc::Rc,
};

use palisade_core::{
    Digest, JobId, LockName, Number, ObjectKey, RequestId, Tenant, Timestamp,
    blob::{Blob, collect::Case},
    job::{Job, JobState},
    lock::{Lock, LockGrant},
    object::Object,
    outbox::{Delivery, Endpoint, EndpointId},
    spec::JobKey,
};
use palisade_store::{
    query::{Resolved, resolve},
    tables::{Keeper, Recorded, Scope},
};

/// Everything that a commit makes durable.
///
/// What is kept by name is shared until it changes: a copy before each command, and one at each
/// commit, cost nothing where nothing is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    /// The last number drawn.
    pub counter: Number,
    /// How much of the journal belongs to it.
    pub journal_length: usize,
    /// The clock as recorded last.
    pub clock: Timestamp,
    /// The store's life.
    pub life: u64,
    named: Rc<Named>,
}

impl std::ops::Deref for Records {
    type Target = Named;

    fn deref(&self) -> &Named {
        &self.named
    }
}

impl std::ops::DerefMut for Records {
    fn deref_mut(&mut self) -> &mut Named {
        Rc::make_mut(&mut self.named)
    }
}

/// What is kept by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Named {
    /// Jobs.
    pub jobs: BTreeMap<JobId, Rc<Job>>,
    /// Blobs, by digest and generation.
    pub blobs: BTreeMap<(Digest, Number), Blob>,
    /// What keeps which blob.
    pub keepers: BTreeSet<(Keeper, Digest, Number)>,
    /// What is in the collector's hands.
    pub cases: BTreeMap<(Digest, Number), Case>,
    /// Jobs that no longer keep their inputs and outputs.
    pub released: BTreeSet<JobId>,
    /// First answers.
    pub requests: BTreeMap<(Scope, RequestId), Rc<Recorded>>,
    /// Locks.
    pub locks: BTreeMap<LockName, Rc<Lock>>,
    /// Locks' grants.
    pub lock_grants: BTreeMap<Number, Rc<LockGrant>>,
    /// Fenced objects.
    pub objects: BTreeMap<ObjectKey, Rc<Object>>,
    /// Who wants to be told.
    pub endpoints: BTreeMap<EndpointId, Rc<Endpoint>>,
    /// What is told.
    pub outbox: BTreeMap<Number, Rc<Delivery>>,
    /// Publications that are due.
    pub publications_due: BTreeMap<Number, JobId>,
}

impl Default for Records {
    fn default() -> Self {
        Self::new(Timestamp::default())
    }
}

impl Records {
    /// None yet.
    pub fn new(now: Timestamp) -> Self {
        Self { counter: Number::ZERO, journal_length: 0, clock: now, life: 1, named: Rc::default() }
    }
}

impl Named {
    /// A digest's newest generation.
    pub fn newest_blob(&self, digest: Digest) -> Option<Blob> {
        let generations = (digest, Number::ZERO)..=(digest, Number::MAX);
        self.blobs.range(generations).next_back().map(|(_, blob)| *blob)
    }

    /// What a key is read as.
    pub fn resolved(&self, key: &ObjectKey) -> Option<Box<Resolved>> {
        let manifest = |id| {
            let job: Option<&Rc<Job>> = self.jobs.get(&id);
            Ok(job.and_then(|job| Some(job.completion.as_ref()?.manifest.clone())))
        };
        let object = |key: &_| Ok(self.objects.get(key).map(|one| (**one).clone()));
        let Ok::<_, Infallible>(resolved) = resolve(key, object, manifest);
        resolved
    }

    /// The newest job of a key in a fitting state.
    pub fn newest(
        &self,
        tenant: &Tenant,
        key: JobKey,
        fits: impl Fn(JobState) -> bool,
    ) -> Option<JobId> {
        let mut newest_first = self.jobs.values().rev();
        newest_first
            .find(|job| job.key == key && job.tenant == *tenant && fits(job.state))
            .map(|job| job.id)
    }
}
