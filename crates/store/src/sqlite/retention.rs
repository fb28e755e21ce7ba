//! What may be forgotten, as the operations see it.

use palisade_core::{JobId, RequestId, SessionId, Timestamp};

use crate::{
    fault::Fault,
    tables::{Chunk, OldClaim, RetentionTables},
};

use super::{
    engine::SqliteEngine,
    records::{claim, journal, request},
    values::{fault, number},
};

impl RetentionTables for SqliteEngine {
    fn is_live(&mut self, job: JobId) -> Result<bool, Fault> {
        let sql = "SELECT 1 FROM jobs WHERE id = ?1 AND live = 1";
        let mut statement = self.connection.prepare_cached(sql).map_err(fault)?;
        statement.exists([number(job.0)]).map_err(fault)
    }

    fn chunks_after(&mut self, position: u64, limit: usize) -> Result<Vec<Chunk>, Fault> {
        journal::chunks_after(&self.connection, position, limit)
    }

    fn drop_chunk(&mut self, chunk: &Chunk) -> Result<(), Fault> {
        self.wrote = true;
        let last = chunk.first + chunk.count - 1;
        self.meta.journal_pruned = self.meta.journal_pruned.max(last);
        journal::drop_chunk(&self.connection, chunk)
    }

    fn forget_requests(&mut self, before: Timestamp, limit: usize) -> Result<usize, Fault> {
        let went = request::forget(&self.connection, before, limit)?;
        self.wrote |= went > 0;
        Ok(went)
    }

    fn old_claims(&mut self, before: Timestamp, limit: usize) -> Result<Vec<OldClaim>, Fault> {
        claim::older(&self.connection, before, limit)
    }

    fn drop_claim(&mut self, session: &SessionId, claim: &RequestId) -> Result<(), Fault> {
        self.wrote = true;
        claim::delete(&self.connection, session, claim)
    }
}
