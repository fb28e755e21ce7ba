//! What may be forgotten: nothing. The lab's worlds are younger than the youngest that may go.

use palisade_core::{JobId, RequestId, SessionId, Timestamp};
use palisade_store::{
    fault::Fault,
    tables::{Chunk, OldClaim, RetentionTables},
};

use super::CrashEngine;

impl RetentionTables for CrashEngine {
    fn is_live(&mut self, job: JobId) -> Result<bool, Fault> {
        Ok(self.live.jobs.get(&job).is_some_and(|job| job.state.is_live()))
    }

    fn chunks_after(&mut self, _position: u64, _limit: usize) -> Result<Vec<Chunk>, Fault> {
        Ok(Vec::new())
    }

    fn drop_chunk(&mut self, _chunk: &Chunk) -> Result<(), Fault> {
        Ok(())
    }

    fn forget_requests(&mut self, _before: Timestamp, _limit: usize) -> Result<usize, Fault> {
        Ok(0)
    }

    fn old_claims(&mut self, _before: Timestamp, _limit: usize) -> Result<Vec<OldClaim>, Fault> {
        Ok(Vec::new())
    }

    fn drop_claim(&mut self, _session: &SessionId, _claim: &RequestId) -> Result<(), Fault> {
        Ok(())
    }
}
