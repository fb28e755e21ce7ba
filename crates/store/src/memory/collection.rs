//! What the collector needs, and what it looks for.

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    blob::{Blob, BlobState, collect::Case},
};

use crate::{
    fault::Fault,
    query::{Cases, Scan},
    tables::{CollectorTables, Keeper},
};

use super::MemoryEngine;

impl CollectorTables for MemoryEngine {
    fn generation(&mut self, digest: Digest, generation: Number) -> Result<Option<Blob>, Fault> {
        Ok(self.blobs.get(&(digest, generation)).copied())
    }

    fn is_kept(&mut self, digest: Digest, generation: Number) -> Result<bool, Fault> {
        Ok(self.keeps(digest, generation))
    }

    fn unkeep_blob(&mut self, digest: Digest, keeper: &Keeper) -> Result<(), Fault> {
        let before = self.keepers.len();
        self.keepers.retain(|(kept_by, of, _)| kept_by != keeper || *of != digest);
        self.wrote |= self.keepers.len() < before;
        Ok(())
    }

    fn drop_passed_pins(&mut self, now: Timestamp) -> Result<(), Fault> {
        let before = self.keepers.len();
        self.keepers.retain(|(keeper, _, _)| !matches!(keeper, Keeper::Until(at) if *at <= now));
        self.wrote |= self.keepers.len() < before;
        Ok(())
    }

    fn case(&mut self, digest: Digest, generation: Number) -> Result<Option<Case>, Fault> {
        Ok(self.cases.get(&(digest, generation)).copied())
    }

    fn put_case(&mut self, case: &Case) -> Result<(), Fault> {
        self.wrote = true;
        self.cases.insert((case.digest, case.generation), *case);
        Ok(())
    }

    fn drop_case(&mut self, digest: Digest, generation: Number) -> Result<(), Fault> {
        self.wrote |= self.cases.remove(&(digest, generation)).is_some();
        Ok(())
    }

    fn forget_blob(&mut self, digest: Digest, generation: Number) -> Result<(), Fault> {
        self.wrote = true;
        self.cases.remove(&(digest, generation));
        self.blobs.remove(&(digest, generation));
        Ok(())
    }

    fn is_released(&mut self, job: JobId) -> Result<bool, Fault> {
        Ok(self.released.contains(&job))
    }

    fn set_released(&mut self, job: JobId, released: bool) -> Result<(), Fault> {
        self.wrote = true;
        if released {
            self.released.insert(job);
        } else {
            self.released.remove(&job);
        }
        Ok(())
    }
}

impl MemoryEngine {
    fn keeps(&self, digest: Digest, generation: Number) -> bool {
        self.keepers.iter().any(|(_, of, kept)| (*of, *kept) == (digest, generation))
    }

    pub(super) fn read_unkept(&self, scan: &Scan) -> (Vec<(Digest, Number)>, Option<Number>) {
        let mut all: Vec<_> = self.blobs.values().collect();
        all.sort_unstable_by_key(|blob| blob.generation);
        let (stretch, next) = stretch(all, scan, |blob| blob.generation);
        let seems_unkept = |blob: &&Blob| {
            let Blob { digest, generation, .. } = **blob;
            blob.state != BlobState::Condemned
                && (!self.keeps(digest, generation)
                    || self.cases.contains_key(&(digest, generation)))
        };
        let unkept = stretch.into_iter().filter(seems_unkept);
        (unkept.map(|blob| (blob.digest, blob.generation)).collect(), next)
    }

    pub(super) fn read_cases(&self, asked: &Cases) -> Vec<Case> {
        let fits = |case: &&Case| case.stage == asked.stage && case.since <= asked.until;
        let mut cases: Vec<_> = self.cases.values().filter(fits).copied().collect();
        cases.sort_unstable_by_key(|case| (case.since, case.generation));
        cases.truncate(asked.limit);
        cases
    }

    pub(super) fn read_past_jobs(
        &self,
        scan: &Scan,
        until: Timestamp,
    ) -> (Vec<JobId>, Option<Number>) {
        let all: Vec<_> = self.jobs.values().collect();
        let (stretch, next) = stretch(all, scan, |job| job.id.0);
        let jobs = stretch.into_iter().filter(|job| {
            !job.state.is_live() && job.moved_at <= until && !self.released.contains(&job.id)
        });
        (jobs.map(|job| job.id).collect(), next)
    }
}

/// The records of a stretch, which come in their order, and where the next one begins.
fn stretch<'all, R>(
    all: Vec<&'all R>,
    scan: &Scan,
    number: impl Fn(&R) -> Number,
) -> (Vec<&'all R>, Option<Number>) {
    let length = scan.length.max(1);
    let after = all.into_iter().filter(|record| number(record) > scan.after);
    let found: Vec<_> = after.take(length).collect();
    let next = found.last().filter(|_| found.len() == length).map(|record| number(record));
    (found, next)
}
