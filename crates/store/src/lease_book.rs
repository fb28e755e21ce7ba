//! All held leases in memory, with their renewals: what makes a heartbeat cost no disk.
//!
//! A lease's first renewal in a life of the store is also written to its record; the others live
//! here alone. Changes of a transaction can be taken back until it commits.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::{
    JobId, LeaseId, Number, SessionId, Timestamp, WorkerName,
    job::Job,
    lease::{Lease, Start},
};

use crate::{command::Capability, tables::HeldLeases};

#[cfg(test)]
mod tests;

/// One held lease: what a heartbeat and a claim need to know of an open attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its token.
    pub token: Number,
    /// The other half of the pair.
    pub lease_id: LeaseId,
    /// The job.
    pub job: JobId,
    /// What a worker must be able to run to take it over.
    pub needs: Capability,
    /// Who holds it.
    pub worker: WorkerName,
    /// Under which session.
    pub session: SessionId,
    /// When it was granted.
    pub granted_at: Timestamp,
    /// Its time.
    pub lease: Lease,
    /// From when on a second attempt may run beside it.
    pub backup_at: Option<Timestamp>,
    /// Whether the job is `failed` should its open attempts be lost.
    pub last_chance: bool,
}

/// The book of held leases.
///
/// Invariant: between transactions, exactly the open attempts of all jobs.
#[derive(Debug, Clone, Default)]
pub struct LeaseBook {
    by_token: BTreeMap<Number, Held>,
    by_job: BTreeMap<JobId, Vec<Number>>,
    by_session: BTreeMap<SessionId, BTreeSet<Number>>,
    /// Each job with the last deadline of its open attempts.
    by_end: BTreeSet<(Timestamp, JobId)>,
    /// Each job that may get a backup, with the instant from which on.
    by_backup: BTreeSet<(Timestamp, JobId)>,
    beats: BTreeMap<SessionId, u64>,
    /// Pauses reported lately.
    pauses: BTreeSet<(Number, u64)>,
    /// What changed since the last commit, oldest first, each with what stood there before.
    undo: Vec<Undo>,
}

/// How many of the pauses reported lately are remembered.
const PAUSES_MAX: usize = 1_000;

/// What stood in the book before a change.
#[derive(Debug, Clone)]
enum Undo {
    /// The whole entry, or none.
    Entry(Number, Option<Box<Held>>),
    /// The time side of an entry that stayed.
    Time(Number, Lease),
    /// The highest heartbeat of a session.
    Beat(SessionId, Option<u64>),
    /// A pause that was new.
    Pause(Number, u64),
}

impl LeaseBook {
    /// A place to roll back to.
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Takes back what changed since the mark.
    pub fn roll_back_to(&mut self, mark: usize) {
        while self.undo.len() > mark {
            match self.undo.pop().expect("longer than the mark") {
                Undo::Entry(token, before) => drop(self.replace(token, before.map(|held| *held))),
                Undo::Time(token, lease) => self.replace_lease(token, lease),
                Undo::Beat(session, Some(seq)) => drop(self.beats.insert(session, seq)),
                Undo::Beat(session, None) => drop(self.beats.remove(&session)),
                Undo::Pause(token, pause_ms) => drop(self.pauses.remove(&(token, pause_ms))),
            }
        }
    }

    /// Keeps what changed, and tells of each lease that did: as it is now, or none if it is no
    /// longer held. A lease that changed twice is told of twice.
    pub fn commit(&mut self, mut changed: impl FnMut(Number, Option<Lease>)) {
        let Self { undo, by_token, .. } = self;
        for undo in undo.drain(..) {
            if let Undo::Entry(token, _) | Undo::Time(token, _) = undo {
                changed(token, by_token.get(&token).map(|held| held.lease));
            }
        }
    }

    /// Takes in a lease as it stands before the transaction: nothing takes it back.
    #[cfg(feature = "postgres")]
    pub(crate) fn load(&mut self, held: Held) {
        self.replace(held.token, Some(held));
    }

    /// Follows a job's record: its open attempts are held, its closed ones are not.
    pub fn follow(&mut self, job: &Job) {
        if job.attempts.is_empty() {
            return;
        }
        let needs = Capability { recipe: job.spec.recipe.clone(), definition: job.spec.definition };
        let (last_chance, backup_at) = (job.is_on_last_chance(), job.backup_at());
        for attempt in &job.attempts {
            let held = attempt.closed.is_none().then(|| Held {
                token: attempt.token,
                lease_id: attempt.lease_id,
                job: job.id,
                needs: needs.clone(),
                worker: attempt.worker.clone(),
                session: attempt.session.clone(),
                granted_at: attempt.granted_at,
                lease: attempt.lease,
                backup_at,
                last_chance,
            });
            if held.is_some() || self.by_token.contains_key(&attempt.token) {
                self.change(attempt.token, held);
            }
        }
    }

    /// Gives a job's open attempts their leases as last renewed.
    pub fn overlay(&self, job: &mut Job) {
        for attempt in job.attempts.iter_mut().filter(|attempt| attempt.closed.is_none()) {
            if let Some(held) = self.by_token.get(&attempt.token) {
                attempt.lease = held.lease;
            }
        }
    }

    /// Every held lease, by token.
    pub fn all(&self) -> impl Iterator<Item = &Held> {
        self.by_token.values()
    }

    /// What every lease becomes after a start of the store. The caller writes them.
    pub fn after_start(&self, start: Start) -> Vec<(Number, Lease)> {
        self.all().map(|held| (held.token, held.lease.after_start(start))).collect()
    }

    fn change(&mut self, token: Number, held: Option<Held>) {
        let before = self.replace(token, held).map(Box::new);
        self.undo.push(Undo::Entry(token, before));
    }

    /// Changes an entry's time. Nothing else of it is touched: this is what each renewal costs.
    fn replace_lease(&mut self, token: Number, lease: Lease) {
        let Some(job) = self.by_token.get(&token).map(|held| held.job) else { return };
        let before = self.end_of(job);
        if let Some(held) = self.by_token.get_mut(&token) {
            held.lease = lease;
        }
        let after = self.end_of(job);
        if before != after {
            before.map(|at| self.by_end.remove(&(at, job)));
            after.map(|at| self.by_end.insert((at, job)));
        }
    }

    fn replace(&mut self, token: Number, held: Option<Held>) -> Option<Held> {
        // The indexes by time are found through the entries, so they go first and come last.
        let before = self.by_token.get(&token).map(|before| before.job);
        if let Some(job) = before {
            self.unindex_job(job);
        }
        let removed = self.by_token.remove(&token);
        if let Some(removed) = &removed {
            self.forget(removed);
        }
        if let Some(job) = before {
            self.index_job(job);
        }
        if let Some(held) = held {
            let job = held.job;
            self.unindex_job(job);
            self.by_session.entry(held.session.clone()).or_default().insert(held.token);
            self.by_job.entry(job).or_default().push(held.token);
            self.by_token.insert(held.token, held);
            self.index_job(job);
        }
        removed
    }

    /// Takes an entry out of the indexes by session and by job.
    fn forget(&mut self, held: &Held) {
        if let Some(tokens) = self.by_session.get_mut(&held.session) {
            tokens.remove(&held.token);
            if tokens.is_empty() {
                self.by_session.remove(&held.session);
            }
        }
        if let Some(tokens) = self.by_job.get_mut(&held.job) {
            tokens.retain(|token| *token != held.token);
            if tokens.is_empty() {
                self.by_job.remove(&held.job);
            }
        }
    }

    fn unindex_job(&mut self, job: JobId) {
        let end = self.end_of(job);
        let backup = self.backup_of(job);
        end.map(|at| self.by_end.remove(&(at, job)));
        backup.map(|at| self.by_backup.remove(&(at, job)));
    }

    fn index_job(&mut self, job: JobId) {
        let end = self.end_of(job);
        let backup = self.backup_of(job);
        end.map(|at| self.by_end.insert((at, job)));
        backup.map(|at| self.by_backup.insert((at, job)));
    }

    fn end_of(&self, job: JobId) -> Option<Timestamp> {
        let tokens = self.by_job.get(&job)?;
        tokens.iter().filter_map(|t| self.by_token.get(t)).map(|held| held.lease.deadline).max()
    }

    fn backup_of(&self, job: JobId) -> Option<Timestamp> {
        match self.by_job.get(&job)?.as_slice() {
            [only] => self.by_token.get(only)?.backup_at,
            _ => None,
        }
    }

    fn any_of(&self, job: JobId) -> Option<&Held> {
        self.by_token.get(self.by_job.get(&job)?.first()?)
    }

    fn pick(
        &self,
        from: &BTreeSet<(Timestamp, JobId)>,
        now: Timestamp,
        fits: &dyn Fn(&Held) -> bool,
        limit: usize,
    ) -> Vec<JobId> {
        from.iter()
            .take_while(|(at, _)| *at <= now)
            .filter(|(_, job)| self.any_of(*job).is_some_and(fits))
            .map(|(_, job)| *job)
            .take(limit)
            .collect()
    }
}

impl HeldLeases for LeaseBook {
    fn get(&self, token: Number) -> Option<&Held> {
        self.by_token.get(&token)
    }

    fn set_lease(&mut self, token: Number, lease: Lease) {
        if let Some(held) = self.by_token.get(&token) {
            self.undo.push(Undo::Time(token, held.lease));
            self.replace_lease(token, lease);
        }
    }

    fn of_session(&self, session: &SessionId) -> Vec<Number> {
        self.by_session.get(session).into_iter().flatten().copied().collect()
    }

    fn lapsed(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool, limit: usize) -> Vec<JobId> {
        self.pick(&self.by_end, now, fits, limit)
    }

    fn backup_due(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool, limit: usize) -> Vec<JobId> {
        self.pick(&self.by_backup, now, fits, limit)
    }

    fn next_change(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool) -> Option<Timestamp> {
        let next = |from: &BTreeSet<(Timestamp, JobId)>| {
            from.range((now.plus_ms(1), JobId(Number::ZERO))..)
                .find(|(_, job)| self.any_of(*job).is_some_and(fits))
                .map(|(at, _)| *at)
        };
        next(&self.by_end).into_iter().chain(next(&self.by_backup)).min()
    }

    fn is_empty(&self) -> bool {
        self.by_token.is_empty()
    }

    fn beat_seen(&self, session: &SessionId) -> u64 {
        self.beats.get(session).copied().unwrap_or(0)
    }

    fn see_beat(&mut self, session: &SessionId, seq: u64) {
        // Sessions without leases have nothing that a late heartbeat could release wrongly.
        if self.beats.len() > 10_000 {
            let by_session = &self.by_session;
            self.beats.retain(|session, _| by_session.contains_key(session));
        }
        let before = self.beats.get(session).copied();
        self.undo.push(Undo::Beat(session.clone(), before));
        self.beats.insert(session.clone(), seq.max(before.unwrap_or(0)));
    }

    fn see_pause(&mut self, token: Number, pause_ms: u64) -> bool {
        let new = self.pauses.insert((token, pause_ms));
        if new {
            self.undo.push(Undo::Pause(token, pause_ms));
            if self.pauses.len() > PAUSES_MAX {
                self.pauses.pop_first();
            }
        }
        new
    }
}
