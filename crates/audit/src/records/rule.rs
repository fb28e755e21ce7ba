//! The invariants by name.

/// What must never be otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A job is completed once, by an attempt of its own.
    OneCompletion,
    /// At most one live job of a tenant has a key.
    OneLiveJob,
    /// No number below a fence took effect, and no fence lies below what was granted.
    Fence,
    /// Tokens rise, and none is above the counter that they are drawn from.
    RisingTokens,
    /// Attempts are open exactly while their job runs.
    AttemptsFitState,
    /// A completion is there exactly when the job is complete, a dead letter when it failed.
    OutcomeFitsState,
    /// At most one grant of a lock is open, and it is the one that the lock names.
    Locks,
    /// What a fenced object points at is what was made.
    Objects,
    /// Each move was told to everybody who asked, and nothing else was.
    Outbox,
    /// What is to be published is what the records say, and names show what was published.
    Publications,
    /// The journal tells what the records say.
    Journal,
}

impl Rule {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OneCompletion => "one_completion",
            Self::OneLiveJob => "one_live_job",
            Self::Fence => "fence",
            Self::RisingTokens => "rising_tokens",
            Self::AttemptsFitState => "attempts_fit_state",
            Self::OutcomeFitsState => "outcome_fits_state",
            Self::Locks => "locks",
            Self::Objects => "objects",
            Self::Outbox => "outbox",
            Self::Publications => "publications",
            Self::Journal => "journal",
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}
