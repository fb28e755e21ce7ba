//! What the collector needs, as the operations see it.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    blob::{Blob, collect::Case},
};

use crate::{
    fault::Fault,
    tables::{CollectorTables, Keeper},
};

use super::{Overlay, Wants};

/// How many keepers of a generation are looked at first: one is enough, unless it is dropped in
/// the same transaction.
pub(in crate::postgres) const KEPT_AT_ONCE: usize = 4;

/// A change of what keeps blobs. Their order counts.
#[derive(Debug, Clone)]
pub(in crate::postgres) enum Keeping {
    /// A generation is kept.
    Keep(Digest, Number, Keeper),
    /// Nothing is kept by this keeper any more.
    Drop(Keeper),
    /// No generation of the digest is.
    Unkeep(Digest, Keeper),
    /// Nothing is kept by pins until this instant or before.
    DropPassed(Timestamp),
}

impl Keeping {
    /// Whether it ends what this keeper keeps of every digest.
    pub(in crate::postgres) fn drops(&self, keeper: &Keeper) -> bool {
        match self {
            Self::Drop(gone) => gone == keeper,
            Self::DropPassed(now) => matches!(keeper, Keeper::Until(at) if at <= now),
            Self::Keep(..) | Self::Unkeep(..) => false,
        }
    }
}

/// Some keepers of each generation, of so many that were asked for.
pub(super) type Kept = BTreeMap<Number, (usize, BTreeSet<Keeper>)>;

impl Overlay {
    /// Up to so many keepers of a generation were asked for, and these came.
    pub(in crate::postgres) fn fetched_kept(
        &mut self,
        generation: Number,
        asked: usize,
        came: BTreeSet<Keeper>,
    ) {
        self.kept.insert(generation, (asked, came));
    }

    /// One generation's row.
    pub(in crate::postgres) fn fetched_generation(&mut self, at: Number, row: Option<Blob>) {
        self.blobs.fetch(at, row);
    }
}

impl CollectorTables for Overlay {
    fn generation(&mut self, digest: Digest, generation: Number) -> Result<Option<Blob>, Fault> {
        match self.blobs.get(&generation) {
            Some(blob) => Ok(blob.filter(|blob| blob.digest == digest).copied()),
            None => Err(self.miss(|wants| wants.generations.insert(generation))),
        }
    }

    fn is_kept(&mut self, digest: Digest, generation: Number) -> Result<bool, Fault> {
        let Some((asked, came)) = self.kept.get(&generation) else {
            return Err(self.miss(|wants| wants.kept.insert(generation, KEPT_AT_ONCE)));
        };
        let mut kept = came.clone();
        for change in &self.keeping {
            match change {
                Keeping::Keep(_, at, keeper) if *at == generation => {
                    kept.insert(keeper.clone());
                }
                Keeping::Unkeep(of, keeper) if *of == digest => {
                    kept.remove(keeper);
                }
                Keeping::Keep(..) | Keeping::Unkeep(..) => {}
                Keeping::Drop(_) | Keeping::DropPassed(_) => {
                    kept.retain(|keeper| !change.drops(keeper));
                }
            }
        }
        if kept.is_empty() && came.len() >= *asked {
            let more = asked.saturating_mul(8);
            return Err(self.miss(|wants| Wants::at_least(&mut wants.kept, &generation, more)));
        }
        Ok(!kept.is_empty())
    }

    fn unkeep_blob(&mut self, digest: Digest, keeper: &Keeper) -> Result<(), Fault> {
        self.keeping.push(Keeping::Unkeep(digest, keeper.clone()));
        Ok(())
    }

    fn drop_passed_pins(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.keeping.push(Keeping::DropPassed(now));
        Ok(())
    }

    fn case(&mut self, digest: Digest, generation: Number) -> Result<Option<Case>, Fault> {
        match self.cases.get(&generation) {
            Some(case) => Ok(case.filter(|case| case.digest == digest).copied()),
            None => Err(self.miss(|wants| wants.cases.insert(generation))),
        }
    }

    fn put_case(&mut self, case: &Case) -> Result<(), Fault> {
        self.cases.put(case.generation, *case);
        Ok(())
    }

    fn drop_case(&mut self, _digest: Digest, generation: Number) -> Result<(), Fault> {
        self.cases.remove(generation);
        Ok(())
    }

    fn forget_blob(&mut self, digest: Digest, generation: Number) -> Result<(), Fault> {
        self.cases.remove(generation);
        self.blobs.remove(generation);
        // An older generation may be left, but only a tombstone, and no rule tells a newest
        // generation that is condemned from none.
        if self.newest_blobs.present(&digest).is_some_and(|blob| blob.generation == generation) {
            self.newest_blobs.remove(digest);
        }
        Ok(())
    }

    fn is_released(&mut self, job: JobId) -> Result<bool, Fault> {
        match self.jobs.get(&job) {
            Some(_) => Ok(self.released.present(&job).is_some()),
            None => Err(self.miss(|wants| wants.jobs.insert(job))),
        }
    }

    fn set_released(&mut self, job: JobId, released: bool) -> Result<(), Fault> {
        if released {
            self.released.put(job, ());
        } else {
            self.released.remove(job);
        }
        Ok(())
    }
}
