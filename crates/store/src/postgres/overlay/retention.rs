//! What may be forgotten, as the operations see it; and publications that are due.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{JobId, Number, RequestId, SessionId, Timestamp};

use crate::{
    fault::Fault,
    postgres::shelf::Shelf,
    tables::{Chunk, OldClaim, PublicationTables, RetentionTables, Scope},
};

use super::{Overlay, Wants};

/// What was asked for, and the keys that came, oldest first.
#[derive(Debug)]
pub(super) struct Old<K> {
    asked: usize,
    came: Vec<K>,
}

impl<K: Clone + Ord> Old<K> {
    /// Of those that came, those that are there still; none: more has to be asked for, so many.
    fn left<V: Clone>(
        old: Option<&Self>,
        shelf: &Shelf<K, V>,
        limit: usize,
    ) -> Result<Vec<K>, usize> {
        let Some(old) = old else { return Err(limit) };
        let there = old.came.iter().filter(|key| shelf.present(key).is_some());
        let left: Vec<_> = there.take(limit).cloned().collect();
        if left.len() < limit && old.came.len() >= old.asked {
            return Err(old.asked.saturating_mul(2).max(limit));
        }
        Ok(left)
    }
}

/// What is old. None of it is changed by anybody but whoever forgets it.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Retention {
    /// Jobs of which is known whether they are live, apart from those that are here.
    lives: BTreeMap<JobId, bool>,
    /// How many chunks after a position were asked for, and those that came.
    chunks: BTreeMap<u64, (usize, Vec<Chunk>)>,
    /// Chunks that are to go.
    pub(in crate::postgres) dropped: Vec<Chunk>,
    requests: BTreeMap<Timestamp, Old<(Scope, RequestId)>>,
    claims: BTreeMap<Timestamp, Old<(SessionId, RequestId)>>,
}

impl Retention {
    pub(in crate::postgres) fn fetched_lives(
        &mut self,
        asked: BTreeSet<JobId>,
        live: &BTreeSet<JobId>,
    ) {
        self.lives.extend(asked.into_iter().map(|id| (id, live.contains(&id))));
    }

    pub(in crate::postgres) fn fetched_chunks(
        &mut self,
        after: u64,
        asked: usize,
        came: Vec<Chunk>,
    ) {
        self.chunks.insert(after, (asked, came));
    }

    pub(in crate::postgres) fn fetched_requests(
        &mut self,
        before: Timestamp,
        asked: usize,
        came: Vec<(Scope, RequestId)>,
    ) {
        self.requests.insert(before, Old { asked, came });
    }

    pub(in crate::postgres) fn fetched_claims(
        &mut self,
        before: Timestamp,
        asked: usize,
        came: Vec<(SessionId, RequestId)>,
    ) {
        self.claims.insert(before, Old { asked, came });
    }
}

impl RetentionTables for Overlay {
    fn is_live(&mut self, job: JobId) -> Result<bool, Fault> {
        if let Some(known) = self.jobs.get(&job) {
            return Ok(known.is_some_and(|job| job.state.is_live()));
        }
        match self.retention.lives.get(&job) {
            Some(live) => Ok(*live),
            None => Err(self.miss(|wants| wants.lives.insert(job))),
        }
    }

    fn chunks_after(&mut self, position: u64, limit: usize) -> Result<Vec<Chunk>, Fault> {
        let Retention { chunks, dropped, .. } = &self.retention;
        let Some((asked, came)) = chunks.get(&position) else {
            return Err(self.miss(|wants| Wants::at_least(&mut wants.chunks, &position, limit)));
        };
        let left = came.iter().filter(|chunk| !dropped.contains(chunk));
        let left: Vec<_> = left.take(limit).cloned().collect();
        if left.len() < limit && came.len() >= *asked {
            let more = asked.saturating_mul(2).max(limit);
            return Err(self.miss(|wants| Wants::at_least(&mut wants.chunks, &position, more)));
        }
        // All of their jobs in one go: else each chunk would cost a round.
        let jobs = left.iter().flat_map(|chunk| &chunk.jobs);
        let known =
            |id: &&JobId| self.jobs.get(id).is_some() || self.retention.lives.contains_key(id);
        let unknown: Vec<_> = jobs.filter(|id| !known(id)).copied().collect();
        if !unknown.is_empty() {
            return Err(self.miss(|wants| wants.lives.extend(unknown)));
        }
        Ok(left)
    }

    fn drop_chunk(&mut self, chunk: &Chunk) -> Result<(), Fault> {
        self.retention.dropped.push(chunk.clone());
        Ok(())
    }

    fn forget_requests(&mut self, before: Timestamp, limit: usize) -> Result<usize, Fault> {
        let old = self.retention.requests.get(&before);
        match Old::left(old, &self.requests, limit) {
            Ok(left) => {
                let went = left.len();
                for key in left {
                    self.requests.remove(key);
                }
                Ok(went)
            }
            Err(more) => {
                Err(self.miss(|wants| Wants::at_least(&mut wants.old_requests, &before, more)))
            }
        }
    }

    fn old_claims(&mut self, before: Timestamp, limit: usize) -> Result<Vec<OldClaim>, Fault> {
        let old = self.retention.claims.get(&before);
        let left = match Old::left(old, &self.claims, limit) {
            Ok(left) => left,
            Err(more) => {
                return Err(
                    self.miss(|wants| Wants::at_least(&mut wants.old_claims, &before, more))
                );
            }
        };
        let claim = |key: (SessionId, RequestId)| {
            let grants = self.claims.present(&key).cloned().unwrap_or_default();
            OldClaim { session: key.0, claim: key.1, grants }
        };
        let claims: Vec<_> = left.into_iter().map(claim).collect();
        let tokens = claims.iter().flat_map(|claim| &claim.grants).map(|(_, token)| *token);
        let unknown: Vec<_> = tokens.filter(|token| !self.knows_lease(*token)).collect();
        if !unknown.is_empty() {
            return Err(self.miss(|wants| wants.leases.extend(unknown)));
        }
        Ok(claims)
    }

    fn drop_claim(&mut self, session: &SessionId, claim: &RequestId) -> Result<(), Fault> {
        self.claims.remove((session.clone(), claim.clone()));
        Ok(())
    }
}

/// How many due publications were asked for, and the last that came; none: that was all there is.
pub(super) type Reach = Option<(usize, Option<Number>)>;

impl Overlay {
    /// So many due publications were asked for, and these came.
    pub(in crate::postgres) fn fetched_publications(
        &mut self,
        asked: usize,
        came: Vec<(Number, JobId)>,
    ) {
        let last = came.last().filter(|_| came.len() >= asked).map(|(number, _)| *number);
        self.publications_reach = Some((asked, last));
        for (number, job) in came {
            self.publications.fetch(number, Some(job));
        }
    }
}

impl PublicationTables for Overlay {
    fn publications_due(&mut self, limit: usize) -> Result<Vec<(Number, JobId)>, Fault> {
        let Some((asked, last)) = self.publications_reach else {
            return Err(self.miss(|wants| wants.publications = wants.publications.max(limit)));
        };
        let mut due: Vec<_> = self.publications.rows().map(|(at, job)| (*at, *job)).collect();
        due.retain(|(number, _)| last.is_none_or(|last| *number <= last));
        due.sort_unstable();
        if due.len() < limit && last.is_some() {
            let more = asked.saturating_mul(2).max(limit);
            return Err(self.miss(|wants| wants.publications = wants.publications.max(more)));
        }
        due.truncate(limit);
        Ok(due)
    }

    fn put_publication_due(&mut self, submission: Number, job: JobId) -> Result<(), Fault> {
        self.publications.put(submission, job);
        Ok(())
    }

    fn drop_publication_due(&mut self, submission: Number) -> Result<(), Fault> {
        self.publications.remove(submission);
        Ok(())
    }
}
