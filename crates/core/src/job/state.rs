//! The states of a job.

use serde::{Deserialize, Serialize};

/// Where a job stands. `docs/state-machine.md` draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for a worker, perhaps not before `run_at`. A claim moves it to `running`; the
    /// withdrawal of its last submission to `cancelled`.
    Queued,
    /// Has attempts. Its worker moves it to `complete`, or by failing or releasing back to
    /// `queued` or to `failed`; a claim after the deadline starts the next attempt or makes it
    /// `failed`, as a tick does; the withdrawal of its last submission makes it `cancelled`.
    Running,
    /// Done; nobody moves it on.
    Complete,
    /// The dead letters. A retry moves it to `queued`.
    Failed,
    /// Nobody wanted it any more. A retry that names a submission moves it to `queued`.
    Cancelled,
}

impl JobState {
    /// All of them, for listings and filters.
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Running, Self::Complete, Self::Failed, Self::Cancelled];

    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it still has a rendering before it. At most one live job has a (tenant, key).
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

impl std::str::FromStr for JobState {
    type Err = crate::Invalid;

    fn from_str(text: &str) -> Result<Self, crate::Invalid> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            crate::Invalid::new(
                "state",
                text,
                "must be queued, running, complete, failed or cancelled",
            )
        })
    }
}

impl std::fmt::Display for JobState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}
