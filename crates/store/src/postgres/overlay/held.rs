//! The held leases as the operations see them.

use std::collections::BTreeSet;

use palisade_core::{JobId, Number, SessionId, Timestamp, lease::Lease};

use crate::{command::Capability, lease_book::Held, tables::HeldLeases};

use super::{Looking, Overlay, Wants};

impl Overlay {
    /// Of these jobs, those that are here as a whole. The others have to be fetched: their other
    /// attempts may have time left.
    fn whole_only(&self, found: Vec<JobId>) -> Vec<JobId> {
        let known = |id: &JobId| self.jobs.get(id).is_some() && self.whole.contains(id);
        let (known, unknown): (Vec<_>, Vec<_>) = found.into_iter().partition(known);
        if !unknown.is_empty() {
            self.miss(|wants| {
                wants.jobs.extend(unknown.iter().copied());
                wants.job_leases.extend(unknown);
            });
        }
        known
    }

    /// Jobs that were found by a lease count only with all their leases, as they are now.
    fn read_candidates(&self) {
        let unread = self.candidates.iter().filter(|id| !self.whole.contains(id));
        let unread: Vec<_> = unread.copied().collect();
        if !unread.is_empty() {
            self.miss(|wants| wants.job_leases.extend(unread));
        }
    }

    /// Wants more than came, where there may be more.
    fn reach_further(
        &self,
        capability: &Capability,
        reached: Option<(usize, bool)>,
        limit: usize,
        want: impl FnOnce(&mut Wants, usize),
    ) {
        match reached {
            Some((_, true)) => {}
            Some((asked, false)) => {
                self.miss(|wants| want(wants, asked.saturating_mul(2).max(limit)));
            }
            None => {
                tracing::debug!(recipe = %capability.recipe, "leases were not asked for before");
                self.miss(|wants| want(wants, limit));
            }
        }
    }

    /// Whether it is known if a lease is held.
    pub(super) fn knows_lease(&self, token: Number) -> bool {
        self.book.get(token).is_some() || self.known_tokens.contains(&token)
    }

    fn claimed(&self) -> &[Capability] {
        match &self.looking {
            Looking::Claim(capabilities) => capabilities,
            Looking::Tick | Looking::Nowhere => &[],
        }
    }
}

impl HeldLeases for Overlay {
    fn get(&self, token: Number) -> Option<&Held> {
        let held = self.book.get(token);
        if held.is_none() && !self.known_tokens.contains(&token) {
            self.miss(|wants| wants.leases.insert(token));
        }
        held
    }

    fn set_lease(&mut self, token: Number, lease: Lease) {
        self.book.set_lease(token, lease);
    }

    fn of_session(&self, session: &SessionId) -> Vec<Number> {
        if !self.whole_sessions.contains(session) {
            self.miss(|wants| wants.sessions.insert(session.clone()));
        }
        self.book.of_session(session)
    }

    fn lapsed(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool, limit: usize) -> Vec<JobId> {
        self.read_candidates();
        let found = self.whole_only(self.book.lapsed(now, fits, limit));
        if found.len() >= limit {
            return found;
        }
        if matches!(self.looking, Looking::Tick) && !self.spent_fetched {
            self.miss(|wants| wants.spent = true);
        }
        for capability in self.claimed() {
            let reached = self.lapsed.get(capability).copied();
            self.reach_further(capability, reached, limit, |wants, count| {
                Wants::at_least(&mut wants.lapsed, capability, count);
            });
        }
        found
    }

    fn backup_due(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool, limit: usize) -> Vec<JobId> {
        self.read_candidates();
        let found = self.whole_only(self.book.backup_due(now, fits, limit));
        if found.len() >= limit {
            return found;
        }
        for capability in self.claimed() {
            let reached = self.backups.get(capability).copied();
            self.reach_further(capability, reached, limit, |wants, count| {
                Wants::at_least(&mut wants.backups, capability, count);
            });
        }
        found
    }

    fn next_change(&self, now: Timestamp, fits: &dyn Fn(&Held) -> bool) -> Option<Timestamp> {
        // Of a job that is here with some of its leases only, nobody knows when it lapses.
        let mut partly = self.lease_rows.values().map(|held| held.job).collect::<BTreeSet<_>>();
        partly.retain(|job| !self.whole.contains(job));
        if !partly.is_empty() {
            self.miss(|wants| wants.job_leases.extend(partly));
        }
        let mut earliest = self.book.next_change(now, fits);
        for capability in self.claimed() {
            let Some(next) = self.next.get(capability) else {
                self.miss(|wants| wants.next.insert(capability.clone()));
                continue;
            };
            earliest = earliest.into_iter().chain(next.lapses).chain(next.backup).min();
        }
        earliest
    }

    fn is_empty(&self) -> bool {
        // Only asked in order to save the recording of the clock, which many servers share.
        false
    }

    fn beat_seen(&self, session: &SessionId) -> u64 {
        if let Some(seq) = self.sessions.get(session) {
            return seq.copied().unwrap_or(0);
        }
        self.miss(|wants| wants.sessions.insert(session.clone()));
        0
    }

    fn see_beat(&mut self, session: &SessionId, seq: u64) {
        let before = self.sessions.present(session).copied().unwrap_or(0);
        self.sessions.put(session.clone(), seq.max(before));
    }

    fn see_pause(&mut self, token: Number, pause_ms: u64) -> bool {
        match self.pauses.get(&(token, pause_ms)) {
            Some(None) => {
                self.pauses.put((token, pause_ms), ());
                true
            }
            Some(Some(())) => false,
            None => {
                self.miss(|wants| wants.pauses.insert((token, pause_ms)));
                false
            }
        }
    }
}
