//! What the collector needs, as the operations see it.

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    blob::{Blob, collect::Case},
};

use crate::{
    fault::Fault,
    tables::{CollectorTables, Keeper},
};

use super::{
    engine::SqliteEngine,
    records::{blob, collection},
};

impl CollectorTables for SqliteEngine {
    fn generation(&mut self, digest: Digest, generation: Number) -> Result<Option<Blob>, Fault> {
        collection::generation(&self.connection, digest, generation)
    }

    fn is_kept(&mut self, _digest: Digest, generation: Number) -> Result<bool, Fault> {
        // A generation is drawn for one digest alone, so it names the blob by itself.
        collection::is_kept(&self.connection, generation)
    }

    fn unkeep_blob(&mut self, digest: Digest, keeper: &Keeper) -> Result<(), Fault> {
        let columns = blob::keeper_columns(keeper);
        self.wrote |= collection::unkeep(&self.connection, digest, columns)? > 0;
        Ok(())
    }

    fn drop_passed_pins(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.wrote |= collection::drop_passed(&self.connection, now)? > 0;
        Ok(())
    }

    fn case(&mut self, digest: Digest, generation: Number) -> Result<Option<Case>, Fault> {
        collection::case(&self.connection, digest, generation)
    }

    fn put_case(&mut self, case: &Case) -> Result<(), Fault> {
        self.wrote = true;
        collection::put(&self.connection, case)
    }

    fn drop_case(&mut self, _digest: Digest, generation: Number) -> Result<(), Fault> {
        self.wrote |= collection::drop_case(&self.connection, generation)? > 0;
        Ok(())
    }

    fn forget_blob(&mut self, _digest: Digest, generation: Number) -> Result<(), Fault> {
        self.wrote = true;
        collection::forget(&self.connection, generation)
    }

    fn is_released(&mut self, job: JobId) -> Result<bool, Fault> {
        collection::is_released(&self.connection, job)
    }

    fn set_released(&mut self, job: JobId, released: bool) -> Result<(), Fault> {
        self.wrote = true;
        collection::set_released(&self.connection, job, released)
    }
}
