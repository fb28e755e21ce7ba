//! What happens to locks, objects and names, in a person's words.

use super::What;

impl What {
    /// The words for what happens to a lock.
    pub(super) fn of_lock(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LockGranted { token, holder, ttl_ms, waited_ms, .. } => write!(
                formatter,
                "granted to {holder} under token {token} for {ttl_ms} ms, after {waited_ms} ms"
            ),
            Self::LockClosed { token, holder, how, .. } => {
                write!(formatter, "token {token} of {holder} was closed, {how}")
            }
            Self::LockWaiting { holder, .. } => write!(formatter, "{holder} waits for it"),
            Self::LockLeft { holder, .. } => write!(formatter, "{holder} waits no longer"),
            _ => Ok(()),
        }
    }

    /// The words for what happens to a fenced object, or to a name that is published.
    pub(super) fn of_object(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ObjectWritten { token, version, digest: Some(digest), .. } => {
                write!(formatter, "token {token} wrote version {version}, {digest}")
            }
            Self::ObjectWritten { token, version, digest: None, .. } => {
                write!(formatter, "token {token} deleted it, version {version}")
            }
            Self::Published { submission, key, version, .. } => {
                write!(
                    formatter,
                    "submission {submission} was published as {key}, version {version}"
                )
            }
            Self::NotPublished { submission, key, reason, fence } => {
                let fence = fence.map(|fence| format!(", its fence {fence}")).unwrap_or_default();
                write!(
                    formatter,
                    "submission {submission} was NOT published as {key}: {reason}{fence}"
                )
            }
            Self::ObjectRaised { fence } => write!(formatter, "the fence was raised to {fence}"),
            _ => Ok(()),
        }
    }
}
