//! The keeper: holds one lease on the worker's side. Events in, actions out.
//!
//! Shared by the worker and the simulator. It knows no clock: every event carries the instant, on
//! a clock that counts suspended time (CLOCK_BOOTTIME). It makes the common case cheap (a worker
//! that lost its lease stops by itself) and closes nothing by itself: a process can be paused
//! between the keeper's word and the effect's arrival. That is what the fence is for.
//!
//! ```text
//!            deadline passed, or a pause                 held
//!   held ───────────────────────────────▶ doubt ─────────────────▶ held
//!    │                                      │ grace over
//!    │ lost, cancelled, unknown             ▼ or lost
//!    └───────────────────────────────────▶ lost
//! ```

#[cfg(test)]
mod tests;

use crate::{Timestamp, time::trusted_span_ms};

/// How a keeper keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeeperConfig {
    /// The lease's length, in ms.
    pub ttl_ms: u64,
    /// How long doubt is put up with before the work is thrown away, in ms.
    pub doubt_grace_ms: u64,
    /// A gap between two ticks that is longer was a pause, in ms, at least 1. Ticks come more
    /// often.
    pub pause_ms: u64,
}

impl KeeperConfig {
    /// What fits a ttl: a pause is what exceeds a third of it, at least two seconds.
    pub fn for_ttl(ttl_ms: u64, doubt_grace_ms: u64) -> Self {
        Self { ttl_ms, doubt_grace_ms, pause_ms: (ttl_ms / 3).max(2_000) }
    }
}

/// What the keeper believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The lease is held, as far as anybody can know.
    Held,
    /// Nobody confirmed it in time, or this process was paused. The children are frozen.
    Doubt {
        /// Since when.
        since: Timestamp,
    },
    /// A complete was sent; only its answer matters now.
    Completing,
    /// Gone. Nothing brings it back.
    Lost,
}

/// Why work is thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortReason {
    /// The store said that the lease is lost.
    Lost,
    /// Nobody wants the job any more.
    Cancelled,
    /// The store does not know the pair.
    UnknownToken,
    /// Nobody confirmed the lease for the whole grace.
    DoubtGraceOver,
}

/// What the keeper wants done, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Stop the children (SIGSTOP) and the clocks of their limits.
    Freeze,
    /// Tell the server (with the next heartbeat) that this process was paused for so many ms.
    ReportPause(u64),
    /// Send a heartbeat.
    Renew,
    /// Let the children go on (SIGCONT).
    Thaw,
    /// Kill the whole process group, discard the scratch, report nothing.
    Abort(AbortReason),
}

/// Keeps one lease.
///
/// Invariant: `Thaw` only ever follows `Freeze`, and nothing follows `Abort`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    config: KeeperConfig,
    state: State,
    /// Up to when the last confirmed renewal may be trusted.
    trusted_until: Timestamp,
    renew_at: Timestamp,
    ticked_at: Timestamp,
    /// When the last pause was noticed. Only what was asked after it ends a doubt: an answer from
    /// before says what was so when nobody looked.
    resumed_at: Timestamp,
}

impl Keeper {
    /// A lease that was just granted. `sent_at` is the instant just before the claim was sent,
    /// `waited_ms` how long it waited at the server before it was granted, `chance` is random.
    pub fn granted(
        config: KeeperConfig,
        sent_at: Timestamp,
        waited_ms: u64,
        now: Timestamp,
        chance: u64,
    ) -> Self {
        let trusted_until = trusted_until(sent_at, waited_ms, config.ttl_ms);
        let mut keeper = Self {
            config,
            state: State::Held,
            trusted_until,
            renew_at: now,
            ticked_at: now,
            resumed_at: Timestamp::default(),
        };
        keeper.schedule_renewal(now, chance);
        keeper
    }

    /// What it believes.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Up to when the lease may be trusted, as far as was confirmed.
    pub const fn trusted_until(&self) -> Timestamp {
        self.trusted_until
    }

    /// The instant at which it wants to be ticked at the latest. After a tick it is always ahead of
    /// it, so that a loop of sleeping and ticking never spins.
    pub fn wake_at(&self) -> Timestamp {
        let soon = self.ticked_at.plus_ms((self.config.pause_ms / 2).max(1));
        match self.state {
            State::Held => self.renew_at.min(self.trusted_until).min(soon),
            State::Doubt { since } => {
                self.renew_at.min(since.plus_ms(self.config.doubt_grace_ms)).min(soon)
            }
            State::Completing => self.renew_at.min(soon),
            State::Lost => soon,
        }
    }

    /// Whether an effect may be attempted now. Every effect asks first, and carries the pair all
    /// the same: the answer may be stale by the time the bytes arrive.
    pub fn may_act(&self, now: Timestamp) -> bool {
        let paused = now.since_ms(self.ticked_at) > self.config.pause_ms;
        let trusted = now < self.trusted_until;
        match self.state {
            State::Held => trusted && !paused,
            State::Completing => true,
            State::Doubt { .. } | State::Lost => false,
        }
    }

    /// Time passed. `chance` is random.
    pub fn tick(&mut self, now: Timestamp, chance: u64) -> Vec<Action> {
        let gap_ms = now.since_ms(self.ticked_at);
        self.ticked_at = now;
        let mut actions = Vec::new();
        if self.state == State::Lost {
            return actions;
        }
        let paused = gap_ms > self.config.pause_ms;
        if paused {
            (self.resumed_at, self.renew_at) = (now, now);
        }
        match self.state {
            State::Held if paused || now >= self.trusted_until => {
                // First of all, before anything else runs: then ask.
                self.state = State::Doubt { since: now };
                actions.push(Action::Freeze);
                self.renew_at = now;
            }
            // A pause is no doubt that the server had a chance to end.
            State::Doubt { since } if paused => {
                self.state = State::Doubt { since: since.plus_ms(gap_ms).min(now) };
            }
            State::Held | State::Doubt { .. } | State::Completing | State::Lost => {}
        }
        if paused {
            actions.push(Action::ReportPause(gap_ms));
        }
        if let State::Doubt { since } = self.state
            && now.since_ms(since) >= self.config.doubt_grace_ms
        {
            actions.push(self.abort(AbortReason::DoubtGraceOver));
            return actions;
        }
        if now >= self.renew_at {
            actions.push(Action::Renew);
            self.schedule_renewal(now, chance);
        }
        actions
    }

    /// A heartbeat that was sent at `sent_at` was answered `held`.
    pub fn confirmed(&mut self, sent_at: Timestamp, now: Timestamp) -> Vec<Action> {
        if self.state == State::Lost {
            return Vec::new();
        }
        let until = trusted_until(sent_at, 0, self.config.ttl_ms);
        self.trusted_until = self.trusted_until.max(until);
        let State::Doubt { .. } = self.state else { return Vec::new() };
        let paused = now.since_ms(self.ticked_at) > self.config.pause_ms;
        if paused || sent_at < self.resumed_at || now >= self.trusted_until {
            return Vec::new();
        }
        self.state = State::Held;
        vec![Action::Thaw]
    }

    /// The store said that the lease is gone: lost, cancelled, or a pair never granted.
    pub fn refused(&mut self, reason: AbortReason) -> Vec<Action> {
        match self.state {
            // The complete may be what closed it; its own answer will tell.
            State::Completing | State::Lost => Vec::new(),
            State::Held | State::Doubt { .. } => vec![self.abort(reason)],
        }
    }

    /// The children are done and a complete is about to be sent. From here on only the complete is
    /// repeated until it is answered: its outcome may be unknown, and nothing else may contradict
    /// it. Answers whether it may be sent.
    pub fn completing(&mut self, now: Timestamp) -> bool {
        if !self.may_act(now) {
            return false;
        }
        self.state = State::Completing;
        true
    }

    /// The attempt is over: completed, failed, released, or refused.
    pub fn finished(&mut self) {
        self.state = State::Lost;
    }

    fn abort(&mut self, reason: AbortReason) -> Action {
        self.state = State::Lost;
        Action::Abort(reason)
    }

    /// At a third of the ttl, less up to a tenth of it at random, so that leases granted together
    /// are not renewed together for ever; in doubt ten times as often.
    fn schedule_renewal(&mut self, now: Timestamp, chance: u64) {
        let third = match self.state {
            State::Doubt { .. } => (self.config.ttl_ms / 30).clamp(100, 2_000),
            State::Held | State::Completing | State::Lost => (self.config.ttl_ms / 3).max(1),
        };
        let jitter = chance % (third / 10 + 1);
        self.renew_at = now.plus_ms(third - jitter);
    }
}

/// `waited_ms` counts for the holder: the server counted the ttl from the grant, not from the
/// request.
fn trusted_until(sent_at: Timestamp, waited_ms: u64, ttl_ms: u64) -> Timestamp {
    let waited_ms = waited_ms - waited_ms.div_ceil(crate::time::DRIFT_DIVISOR).min(waited_ms);
    sent_at.plus_ms(waited_ms + trusted_span_ms(ttl_ms))
}
