//! When a session that is gone is taken for dead. Pure: time is an argument.
//!
//! Suspecting too early costs compute alone, so the rule may be eager; what it must not do is
//! take the server's own trouble for the workers' deaths. A server that has just started, woke
//! from a gap of its own, or loses most sessions together suspects nobody: those leases keep
//! their time.

use std::collections::{BTreeMap, VecDeque};

use palisade_core::{SessionId, Timestamp};

/// Sessions lost within this time, in ms, are lost together.
const TOGETHER_MS: u64 = 1_000;
/// With fewer sessions than this, losing most of them says nothing about the server.
const CROWD_MIN: usize = 4;
/// Looked at less often than this, in ms, the server was stopped itself.
const GAP_MS: u64 = 1_500;

/// Counts connections, and tells which sessions to suspect.
#[derive(Debug)]
pub(super) struct Suspicion {
    after_ms: u64,
    quiet_ms: u64,
    quiet_until: Timestamp,
    looked_at: Timestamp,
    /// Connections of each session that has one.
    connections: BTreeMap<SessionId, usize>,
    /// Sessions without a connection, since when.
    gone: BTreeMap<SessionId, Timestamp>,
    /// Recent ends: when, and how many sessions there were just before.
    ends: VecDeque<(Timestamp, usize)>,
}

impl Suspicion {
    /// A server starts.
    pub(super) fn new(after_ms: u64, quiet_ms: u64, now: Timestamp) -> Self {
        Self {
            after_ms,
            quiet_ms,
            quiet_until: now.plus_ms(quiet_ms),
            looked_at: now,
            connections: BTreeMap::new(),
            gone: BTreeMap::new(),
            ends: VecDeque::new(),
        }
    }

    /// A connection of the session was made.
    pub(super) fn opened(&mut self, session: &SessionId) {
        *self.connections.entry(session.clone()).or_default() += 1;
        self.gone.remove(session);
    }

    /// A connection of the session broke.
    pub(super) fn broke(&mut self, session: &SessionId, now: Timestamp) {
        let sessions = self.connections.len();
        let Some(count) = self.connections.get_mut(session) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.connections.remove(session);
        self.ends.push_back((now, sessions));
        self.gone.insert(session.clone(), now);
    }

    /// Time has come to here. Answers whom to suspect, each with when its end was noticed.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<(SessionId, Timestamp)> {
        if now.since_ms(self.looked_at) > GAP_MS {
            // What broke meanwhile may have broken because nobody was here to answer: everybody gets
            // the time to come back anew.
            self.gone.values_mut().for_each(|seen_at| *seen_at = now);
            self.quiet_until = self.quiet_until.max(now.plus_ms(self.quiet_ms));
        }
        self.looked_at = now;
        if now < self.quiet_until {
            // Nobody is suspected yet; whoever has not come back by the end of it is.
            return Vec::new();
        }
        let due: Vec<_> = self
            .gone
            .iter()
            .filter(|(_, seen_at)| now.since_ms(**seen_at) >= self.after_ms)
            .map(|(session, seen_at)| (session.clone(), *seen_at))
            .collect();
        for (session, _) in &due {
            self.gone.remove(session);
        }
        let suspects = due.into_iter().filter(|(_, at)| !self.lost_most_around(*at)).collect();
        let kept_ms = self.after_ms + 2 * TOGETHER_MS;
        while self.ends.front().is_some_and(|(at, _)| now.since_ms(*at) > kept_ms) {
            self.ends.pop_front();
        }
        suspects
    }

    /// Whether a session has a connection.
    pub(super) fn is_connected(&self, session: &SessionId) -> bool {
        self.connections.contains_key(session)
    }

    fn lost_most_around(&self, at: Timestamp) -> bool {
        let near = |end: &&(Timestamp, usize)| {
            end.0.since_ms(at) <= TOGETHER_MS && at.since_ms(end.0) <= TOGETHER_MS
        };
        let lost = self.ends.iter().filter(near).count();
        let before = self.ends.iter().filter(near).map(|(_, sessions)| *sessions).max();
        before.is_some_and(|before| before >= CROWD_MIN && lost * 2 > before)
    }
}

#[cfg(test)]
mod tests;
