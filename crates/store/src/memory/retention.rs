//! What may be forgotten. An entry is a chunk of its own; what claims were granted is read from the
//! attempts, so there is nothing of it to forget.

use palisade_core::{JobId, RequestId, SessionId, Timestamp};

use crate::{
    fault::Fault,
    tables::{Chunk, OldClaim, RetentionTables},
};

use super::MemoryEngine;

impl RetentionTables for MemoryEngine {
    fn is_live(&mut self, job: JobId) -> Result<bool, Fault> {
        Ok(self.jobs.get(&job).is_some_and(|job| job.state.is_live()))
    }

    fn chunks_after(&mut self, position: u64, limit: usize) -> Result<Vec<Chunk>, Fault> {
        let chunks = self.journal.range(position.saturating_add(1)..).take(limit);
        let chunk = |(first, event): (&u64, &palisade_core::history::Event)| Chunk {
            first: *first,
            count: 1,
            newest: event.at,
            jobs: event.job().into_iter().collect(),
        };
        Ok(chunks.map(chunk).collect())
    }

    fn drop_chunk(&mut self, chunk: &Chunk) -> Result<(), Fault> {
        self.wrote = true;
        self.journal.remove(&chunk.first);
        self.pruned = self.pruned.max(chunk.first);
        Ok(())
    }

    fn forget_requests(&mut self, before: Timestamp, limit: usize) -> Result<usize, Fault> {
        let old = self.requests.iter().filter(|(_, (at, _))| *at < before).take(limit);
        let old: Vec<_> = old.map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.requests.remove(key);
        }
        self.wrote |= !old.is_empty();
        Ok(old.len())
    }

    fn old_claims(&mut self, _before: Timestamp, _limit: usize) -> Result<Vec<OldClaim>, Fault> {
        Ok(Vec::new())
    }

    fn drop_claim(&mut self, _session: &SessionId, _claim: &RequestId) -> Result<(), Fault> {
        Ok(())
    }
}
