//! Why a render came to nothing.

use palisade_core::{
    job::{Failure, FailureKind},
    limits,
};

/// Why a render came to nothing. Whatever it is, nothing of its children is left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// It was killed through its control. Nothing is to be reported: the lease is somebody
    /// else's, or the job is cancelled.
    #[error("the render was killed")]
    Killed,
    /// It failed; this is what to report. `kind` says whether another try can help.
    #[error("{}", .0.message)]
    Failed(Failure),
}

impl RenderError {
    /// A failure after which another try can help.
    pub(crate) fn retryable(reason: &str, message: impl Into<String>) -> Self {
        Self::failed(reason, message.into(), FailureKind::Retryable)
    }

    /// A failure that every other try would meet too.
    pub(crate) fn definite(reason: &str, message: impl Into<String>) -> Self {
        Self::failed(reason, message.into(), FailureKind::Final)
    }

    fn failed(reason: &str, message: String, kind: FailureKind) -> Self {
        let message = cut(message);
        Self::Failed(Failure { reason: reason.to_owned(), message, kind })
    }

    /// A failure of the worker's own file system.
    pub(crate) fn of_io(what: &str, error: &std::io::Error) -> Self {
        let reason = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "disk_full",
            _ => "worker_io",
        };
        Self::retryable(reason, format!("{what}: {error}"))
    }
}

impl From<super::control::Killed> for RenderError {
    fn from(_: super::control::Killed) -> Self {
        Self::Killed
    }
}

/// The longest message that is kept; the beginning is ours and says the most.
fn cut(mut message: String) -> String {
    if message.len() > limits::MESSAGE_BYTES_MAX {
        let room = limits::MESSAGE_BYTES_MAX - '…'.len_utf8();
        message.truncate(message.floor_char_boundary(room));
        message.push('…');
    }
    message
}
