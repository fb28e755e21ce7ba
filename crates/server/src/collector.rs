//! The collector: condemns what nobody keeps, and clears its place.
//!
//! It may pause, die or run twice at any moment. What makes that harmless is not here: each
//! decision is a transaction of the store's, which looks again; a place is never named again once
//! condemned, so a deletion that comes late takes away only what nobody asks for; and what was
//! left undone stands in the store, for any collector to go on with.
//!
//! Must not know: registers. They live in a place of their own, which no deletion here can name.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use palisade_artefacts::{BlobError, Blobs, Place};
use palisade_core::{Digest, Number, Timestamp, blob::collect::Stage};
use palisade_store::{
    Failure, Store, StoreExt,
    command::{Collect, ForgetBlobs, MarkCleared, ReleaseJobs},
    query::{Cases, Query, Scan, View},
};

use crate::{app::App, duty::Duty};

/// How many records one round looks at, of each kind.
const STRETCH: usize = 5_000;
/// How many places one round clears.
const CLEARED_MAX: usize = 1_000;

/// When what nobody keeps is cleared away.
#[derive(Debug, Clone)]
pub struct Collection {
    /// How often a round begins.
    pub every: Duration,
    /// How long nothing must have kept a blob before it is condemned, in ms.
    pub grace_ms: u64,
    /// How long after its condemnation an upload to its place may still arrive, in ms. One that
    /// takes longer leaves bytes that nobody finds.
    pub tombstone_ms: u64,
    /// How long jobs keep their inputs and outputs after they are over, in ms. None: for ever.
    pub keep_jobs_ms: Option<u64>,
    /// How old an unfinished upload must be before it is taken back, in ms.
    pub upload_ms_max: u64,
    /// How often unfinished uploads are looked for, in ms.
    pub sweep_every_ms: u64,
}

impl Default for Collection {
    fn default() -> Self {
        const HOUR_MS: u64 = 60 * 60 * 1_000;
        Self {
            every: Duration::from_mins(1),
            grace_ms: HOUR_MS,
            tombstone_ms: 7 * 24 * HOUR_MS,
            keep_jobs_ms: None,
            upload_ms_max: 24 * HOUR_MS,
            sweep_every_ms: HOUR_MS,
        }
    }
}

/// A round that broke off. The next one goes on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RoundError {
    /// The store did not do it.
    #[error("the store")]
    Store(#[from] Failure),
    /// The blobs' backend did not do it.
    #[error("the blobs")]
    Blobs(#[from] BlobError),
}

/// What a round did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) released: usize,
    pub(crate) condemned: usize,
    pub(crate) cleared: usize,
    pub(crate) forgotten: usize,
    pub(crate) swept: u64,
}

/// One collector. All that it remembers is how far its walks have come; forgotten, they begin anew.
#[derive(Debug)]
pub(crate) struct Collector {
    store: Arc<dyn Store>,
    blobs: Arc<dyn Blobs>,
    settings: Collection,
    jobs_after: Number,
    blobs_after: Number,
    swept_at: Option<Timestamp>,
}

impl Collector {
    pub(crate) fn new(store: Arc<dyn Store>, blobs: Arc<dyn Blobs>, settings: Collection) -> Self {
        let (jobs_after, blobs_after) = (Number::ZERO, Number::ZERO);
        Self { store, blobs, settings, jobs_after, blobs_after, swept_at: None }
    }

    /// One round: each step for as many as it is allowed. A step that fails ends the round.
    pub(crate) async fn round(&mut self) -> Result<Tally, RoundError> {
        let released = self.release_jobs().await?;
        let condemned = self.condemn().await?;
        let cleared = self.clear().await?;
        let forgotten = self.forget().await?;
        let swept = self.sweep().await?;
        Ok(Tally { released, condemned, cleared, forgotten, swept })
    }

    /// Jobs whose time is over let go of what they kept.
    async fn release_jobs(&mut self) -> Result<usize, RoundError> {
        let Some(keep_ms) = self.settings.keep_jobs_ms else { return Ok(0) };
        let until = Timestamp(self.store.now().0.saturating_sub(keep_ms));
        let scan = Scan { after: self.jobs_after, length: STRETCH };
        let View::PastJobs(jobs, next) = self.store.query(Query::PastJobs { scan, until }).await?
        else {
            unreachable!("each query is answered by its own kind")
        };
        let released = if jobs.is_empty() {
            0
        } else {
            self.store.run(ReleaseJobs { jobs, keep_ms }).await?.jobs.len()
        };
        self.jobs_after = next.unwrap_or(Number::ZERO);
        Ok(released)
    }

    /// What nobody has kept for the grace is condemned.
    async fn condemn(&mut self) -> Result<usize, RoundError> {
        let grace_ms = self.settings.grace_ms;
        // Before the look, so that a pin whose time is over does not hide what it kept.
        self.store.run(Collect { blobs: Vec::new(), grace_ms }).await?;
        let scan = Scan { after: self.blobs_after, length: STRETCH };
        let View::Unkept(blobs, next) = self.store.query(Query::Unkept(scan)).await? else {
            unreachable!("each query is answered by its own kind")
        };
        let condemned = if blobs.is_empty() {
            0
        } else {
            self.store.run(Collect { blobs, grace_ms }).await?.places.len()
        };
        self.blobs_after = next.unwrap_or(Number::ZERO);
        Ok(condemned)
    }

    /// The places of what is condemned are cleared: those generations', and no others.
    async fn clear(&self) -> Result<usize, RoundError> {
        let places = self.delete_cases(Stage::Condemned, self.store.now()).await?;
        if places.is_empty() {
            return Ok(0);
        }
        Ok(self.store.run(MarkCleared { places }).await?.places.len())
    }

    /// Tombstones whose time is over are forgotten, their places cleared once more: a late upload
    /// may have come since.
    async fn forget(&self) -> Result<usize, RoundError> {
        let tombstone_ms = self.settings.tombstone_ms;
        let until = Timestamp(self.store.now().0.saturating_sub(tombstone_ms));
        let places = self.delete_cases(Stage::Cleared, until).await?;
        if places.is_empty() {
            return Ok(0);
        }
        Ok(self.store.run(ForgetBlobs { places, tombstone_ms }).await?.places.len())
    }

    /// Deletes the places of cases, which are condemned for ever: to do it late, or twice, or
    /// after somebody else did, takes nothing from anybody.
    async fn delete_cases(
        &self,
        stage: Stage,
        until: Timestamp,
    ) -> Result<Vec<(Digest, Number)>, RoundError> {
        let asked = Cases { stage, until, limit: CLEARED_MAX };
        let View::Cases(cases) = self.store.query(Query::Cases(asked)).await? else {
            unreachable!("each query is answered by its own kind")
        };
        let mut deleted = Vec::with_capacity(cases.len());
        for case in cases {
            match self.blobs.delete(Place::new(case.digest, case.generation)).await {
                Ok(()) => deleted.push((case.digest, case.generation)),
                Err(error) if deleted.is_empty() => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(error = palisade_core::with_causes(&error), "stopped clearing");
                    break;
                }
            }
        }
        Ok(deleted)
    }

    /// Now and then, what dead uploads have left is taken back.
    async fn sweep(&mut self) -> Result<u64, RoundError> {
        let now = self.store.now();
        let due = self.swept_at.is_none_or(|at| now >= at.plus_ms(self.settings.sweep_every_ms));
        if !due {
            return Ok(0);
        }
        // Also when it fails: a store that cannot list is not asked again at once.
        self.swept_at = Some(now);
        let before = Timestamp(now.0.saturating_sub(self.settings.upload_ms_max));
        Ok(self.blobs.sweep(before).await?)
    }
}

/// Collects, round after round, until the server ends.
pub(crate) async fn keep_collecting(app: App) {
    let settings = app.config.collection.clone();
    let every = settings.every;
    let mut duty = Duty::new(&app, "collection", every);
    let mut collector = Collector::new(Arc::clone(&app.store), Arc::clone(&app.blobs), settings);
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = app.stopping.cancelled() => return duty.hand_over().await,
        }
        if !duty.is_ours().await {
            continue;
        }
        match collector.round().await {
            Ok(tally) if tally == Tally::default() => {}
            Ok(tally) => tracing::info!(?tally, "collected"),
            Err(error) => {
                let error = palisade_core::with_causes(&error);
                tracing::warn!(error, "a round of collecting broke off; the next one goes on");
            }
        }
    }
}
