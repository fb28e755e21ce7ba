//! The designs that are compared, behind one seam: who keeps the records, how a worker keeps its
//! lease, and where its effects go.

use palisade_core::{Invalid, Timestamp};

use crate::{
    engine::{CrashEngine, Engine, LockEngine},
    sabotage::Sabotage,
};

/// A design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Design {
    /// A lock without expiry.
    LockForever,
    /// A lock that expires.
    Lease,
    /// A lock that expires unless renewed; a worker that loses it stops by itself.
    LeaseHeartbeat,
    /// Palisade's leases; the worker's effects carry the token, and what receives them compares.
    LeaseFenced,
    /// Palisade: a queue with visibility timeouts, a fenced commit, and projections of it.
    Queue,
    /// The same, under a dispatch layer that lies.
    LyingDispatch,
}

/// How effects reach the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// The worker writes, and the outside takes whatever comes.
    Bare,
    /// The worker writes with its pair, and the outside compares tokens.
    Fenced,
    /// The server projects what was committed.
    Projected,
}

impl Design {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 6] = [
        Self::LockForever,
        Self::Lease,
        Self::LeaseHeartbeat,
        Self::LeaseFenced,
        Self::Queue,
        Self::LyingDispatch,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LockForever => "lock-forever",
            Self::Lease => "lease",
            Self::LeaseHeartbeat => "lease-heartbeat",
            Self::LeaseFenced => "lease-fenced",
            Self::Queue => "queue",
            Self::LyingDispatch => "lying-dispatch",
        }
    }

    /// Whether it promises that nothing is duplicated, lost or stalled.
    pub const fn is_held_to_it(self) -> bool {
        matches!(self, Self::LeaseFenced | Self::Queue | Self::LyingDispatch)
    }

    /// How its effects reach the outside.
    pub const fn effects(self) -> Effects {
        match self {
            Self::LockForever | Self::Lease | Self::LeaseHeartbeat => Effects::Bare,
            Self::LeaseFenced => Effects::Fenced,
            Self::Queue | Self::LyingDispatch => Effects::Projected,
        }
    }

    /// Whether the server publishes and tells what was committed.
    pub fn publishes(self) -> bool {
        self.effects() == Effects::Projected
    }

    /// Whether its workers renew, and stop by themselves when they cannot.
    pub const fn has_keeper(self) -> bool {
        !matches!(self, Self::LockForever | Self::Lease)
    }

    /// Whether the server notices a broken connection, and counts only time in which it served.
    pub const fn is_palisade(self) -> bool {
        self.is_held_to_it()
    }

    /// An empty store of the design.
    pub fn engine(self, now: Timestamp, broken: Option<Sabotage>) -> Box<dyn Engine> {
        match self {
            Self::LockForever => Box::new(LockEngine::new(false)),
            Self::Lease | Self::LeaseHeartbeat => Box::new(LockEngine::new(true)),
            Self::LeaseFenced | Self::Queue | Self::LyingDispatch => {
                Box::new(CrashEngine::new(now, broken))
            }
        }
    }
}

impl std::str::FromStr for Design {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|design| design.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Invalid::new("design", text, format!("must be all or one of {names}"))
        })
    }
}

impl std::fmt::Display for Design {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
