//! Why a store did not do what it was asked, told apart by what the asker can do.

use palisade_core::Refusal;

/// A command or query that came to nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// A rule refused it. Asking again the same way is refused again.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing was done; it may be asked again.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// It may have been done. Ask again with the same ids.
    #[error("the outcome is unknown: {0}; ask again with the same ids")]
    Unknown(String),
}
