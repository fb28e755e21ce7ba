//! What can be read of a store.

use palisade_core::{
    Digest, JobId, LockName, Number, ObjectKey, RecipeName, SessionId, Timestamp, WorkerName,
    blob::{
        Blob,
        collect::{Case, Stage},
    },
    history::Event,
    job::{Job, JobState},
    lease::Lease,
    lock::Lock,
    manifest::Manifest,
    object::{Content, Object},
    outbox::{Delivery, Endpoint, EndpointId},
};

/// One question. Answers see everything whose commit was answered before the question was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// One job.
    Job(JobId),
    /// Jobs, newest first.
    Jobs(JobFilter),
    /// The journal's entries of one job, oldest first.
    History(JobId),
    /// The journal from a position on, oldest first.
    Events {
        /// Entries after this position.
        after: u64,
        /// At most so many.
        limit: usize,
    },
    /// How far the journal reaches.
    JournalSpan,
    /// A digest's newest generation.
    Blob(Digest),
    /// All leases that are held.
    Leases,
    /// One lock.
    Lock(LockName),
    /// Locks by name.
    Locks(Page),
    /// One fenced object. Deleted ones are answered too: their fence stands.
    Object(ObjectKey),
    /// What a key is read as: its own object or, where there is none to read, the longest name that
    /// it lies under and that is published.
    Resolve(ObjectKey),
    /// Fenced objects that can be read, by key.
    Objects(Page),
    /// All endpoints, by id.
    Endpoints,
    /// One endpoint's notifications, newest first.
    Deliveries(DeliveryFilter),
    /// How many jobs stand in each state.
    Counts,
    /// Blobs that nothing keeps, in one stretch of all; pins count until they are dropped.
    Unkept(Scan),
    /// Blobs in the collector's hands.
    Cases(Cases),
    /// Jobs that are over, moved last at `until` or before, and not released, in one stretch.
    PastJobs {
        /// The stretch.
        scan: Scan,
        /// The instant.
        until: Timestamp,
    },
}

/// A stretch of all records of a kind: a walk over all of them costs little at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan {
    /// Records after this number: zero, or where the last stretch ended.
    pub after: Number,
    /// How many records to look at; at least one.
    pub length: usize,
}

/// Which cases of the collector are shown, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cases {
    /// Of this stage.
    pub stage: Stage,
    /// In it (once condemned: condemned) since then or earlier.
    pub until: Timestamp,
    /// At most so many.
    pub limit: usize,
}

/// A page of things that are listed by their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Only names that begin with it.
    pub prefix: String,
    /// Only names after this one: the cursor.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl Page {
    /// Whether it shows this name.
    pub fn shows(&self, name: &str) -> bool {
        name.starts_with(&self.prefix)
            && self.after.as_ref().is_none_or(|after| name > after.as_str())
    }
}

/// Which jobs a listing shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Only in this state.
    pub state: Option<JobState>,
    /// Only of this recipe.
    pub recipe: Option<RecipeName>,
    /// Only older than this one: the cursor.
    pub before: Option<JobId>,
    /// At most so many.
    pub limit: usize,
}

/// Which notifications a listing shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Of which endpoint.
    pub endpoint: EndpointId,
    /// Only those that stand so: a word of [`Standing::WORDS`](palisade_core::outbox::Standing::WORDS).
    pub standing: Option<&'static str>,
    /// Only older than this one: the cursor.
    pub before: Option<Number>,
    /// At most so many.
    pub limit: usize,
}

impl DeliveryFilter {
    /// Whether it shows this one.
    pub fn shows(&self, delivery: &Delivery) -> bool {
        delivery.endpoint == self.endpoint
            && self.standing.is_none_or(|word| word == delivery.standing.as_str())
            && self.before.is_none_or(|before| delivery.number < before)
    }
}

/// The answer to a [`Query`]. Each variant answers the query of the same name.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each variant is documented at its query")]
pub enum View {
    Job(Option<Box<Job>>),
    Jobs(Vec<Job>),
    History(Vec<(u64, Event)>),
    Events(Vec<(u64, Event)>),
    JournalSpan(JournalSpan),
    Blob(Option<Blob>),
    Leases(Vec<LeaseView>),
    Lock(Option<Box<Lock>>),
    Locks(Vec<Lock>),
    Object(Option<Box<Object>>),
    Resolve(Option<Box<Resolved>>),
    Objects(Vec<Object>),
    Endpoints(Vec<Endpoint>),
    Deliveries(Vec<Delivery>),
    Counts(Vec<(JobState, u64)>),
    /// With where the next stretch begins; none: that was the last.
    Unkept(Vec<(Digest, Number)>, Option<Number>),
    Cases(Vec<Case>),
    PastJobs(Vec<JobId>, Option<Number>),
}

/// How far the journal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalSpan {
    /// Up to this position entries may be missing: whoever reads on from before it may have missed
    /// some. 0: nothing was ever forgotten.
    pub pruned: u64,
    /// The position that the next entry gets.
    pub next: u64,
}

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseView {
    /// Its token.
    pub token: Number,
    /// The job.
    pub job: JobId,
    /// Who holds it.
    pub worker: WorkerName,
    /// Under which session.
    pub session: SessionId,
    /// When it was granted.
    pub granted_at: Timestamp,
    /// Its time.
    pub lease: Lease,
}

/// What a key is read as.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The object: of the key itself, or of a published name that the key lies under.
    pub object: Object,
    /// The outputs that it points at, if it is published.
    pub manifest: Option<Manifest>,
}

/// Answers [`Query::Resolve`] over an engine's records, which must be of one moment: so a folder is
/// read as one version or as another, and never as something in between.
pub fn resolve<E>(
    key: &ObjectKey,
    object: impl Fn(&ObjectKey) -> Result<Option<Object>, E>,
    manifest: impl Fn(JobId) -> Result<Option<Manifest>, E>,
) -> Result<Option<Box<Resolved>>, E> {
    let mut found = object(key)?.filter(Object::is_readable);
    let mut folders = key.folders();
    while found.is_none()
        && let Some(folder) = folders.next()
    {
        let published = |one: &Object| matches!(one.content, Some(Content::Manifest { .. }));
        found = object(&folder)?.filter(published);
    }
    let Some(object) = found else { return Ok(None) };
    let manifest = match &object.content {
        Some(Content::Manifest { job, .. }) => manifest(*job)?,
        Some(Content::Blob { .. }) | None => None,
    };
    Ok(Some(Box::new(Resolved { object, manifest })))
}
