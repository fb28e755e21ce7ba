//! What the collector needs, as the real operations see it.

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    blob::{Blob, collect::Case},
};
use palisade_store::{
    fault::Fault,
    tables::{CollectorTables, Keeper},
};

use crate::sabotage::Sabotage;

use super::CrashEngine;

impl CollectorTables for CrashEngine {
    fn generation(&mut self, digest: Digest, generation: Number) -> Result<Option<Blob>, Fault> {
        Ok(self.live.blobs.get(&(digest, generation)).copied())
    }

    fn is_kept(&mut self, digest: Digest, generation: Number) -> Result<bool, Fault> {
        let pins_count = self.broken != Some(Sabotage::CollectedWhilePinned);
        let counts = |keeper: &Keeper| pins_count || !matches!(keeper, Keeper::Attempt(_));
        let mut keepers = self.live.keepers.iter();
        Ok(keepers.any(|(by, of, kept)| (*of, *kept) == (digest, generation) && counts(by)))
    }

    fn unkeep_blob(&mut self, digest: Digest, keeper: &Keeper) -> Result<(), Fault> {
        self.room()?;
        self.live.keepers.retain(|(kept_by, of, _)| kept_by != keeper || *of != digest);
        Ok(())
    }

    fn drop_passed_pins(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.room()?;
        let passed = |keeper: &Keeper| matches!(keeper, Keeper::Until(at) if *at <= now);
        self.live.keepers.retain(|(keeper, _, _)| !passed(keeper));
        Ok(())
    }

    fn case(&mut self, digest: Digest, generation: Number) -> Result<Option<Case>, Fault> {
        Ok(self.live.cases.get(&(digest, generation)).copied())
    }

    fn put_case(&mut self, case: &Case) -> Result<(), Fault> {
        self.room()?;
        self.live.cases.insert((case.digest, case.generation), *case);
        Ok(())
    }

    fn drop_case(&mut self, digest: Digest, generation: Number) -> Result<(), Fault> {
        self.room()?;
        self.live.cases.remove(&(digest, generation));
        Ok(())
    }

    fn forget_blob(&mut self, digest: Digest, generation: Number) -> Result<(), Fault> {
        self.room()?;
        self.live.cases.remove(&(digest, generation));
        self.live.blobs.remove(&(digest, generation));
        Ok(())
    }

    fn is_released(&mut self, job: JobId) -> Result<bool, Fault> {
        Ok(self.live.released.contains(&job))
    }

    fn set_released(&mut self, job: JobId, released: bool) -> Result<(), Fault> {
        self.room()?;
        if released {
            self.live.released.insert(job);
        } else {
            self.live.released.remove(&job);
        }
        Ok(())
    }
}
