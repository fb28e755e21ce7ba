//! Exit codes, part of the public contract, and how an error is told.

use std::process::ExitCode;

use palisade_api::{ClientError, Problem};
use palisade_artefacts::location;
use palisade_core::with_causes;
use palisade_server::StartError;
use palisade_store::postgres;

use crate::output;

/// The work came to nothing: the job failed or was cancelled.
pub(crate) const FAILED: u8 = 1;
/// Bad usage: a flag, a file or a value that is not allowed.
pub(crate) const USAGE: u8 = 2;
/// The server cannot be reached, or is unavailable.
pub(crate) const UNREACHABLE: u8 = 3;
/// There is no such thing.
pub(crate) const NOT_FOUND: u8 = 4;
/// Refused, because of the state that things are in.
pub(crate) const REFUSED: u8 = 5;
/// The lock is held by somebody else, and the wait for it is over. This and the next two are clear
/// of what commands under a lock usually end with: shells, `timeout` and sysexits have others.
pub(crate) const NOT_ACQUIRED: u8 = 117;
/// The lock was lost before its command had ended, and the command was killed.
pub(crate) const LOST: u8 = 118;
/// The server could not be asked for the lock; the command was not started.
pub(crate) const LOCK_UNREACHABLE: u8 = 119;
/// The time given was over.
pub(crate) const TIMED_OUT: u8 = 124;

/// What `--help` says of them.
pub(crate) const HELP: &str = "Exit codes: 0 done; 1 the job failed or was cancelled; 2 bad \
usage or a value that is not allowed; 3 server unreachable or unavailable; 4 no such thing; \
5 refused because of the state that things are in; 124 the time given was over.";

/// An error that bad usage caused: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Tells an error, its causes included, and answers the exit code that fits it.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    let problem = problem_of(error);
    if json && let Some(problem) = problem {
        output::json(problem);
    }
    output::complain(&format!("palisade: {}", with_causes(error.as_ref())));
    ExitCode::from(code(error, problem))
}

fn problem_of(error: &anyhow::Error) -> Option<&Problem> {
    error.chain().find_map(|cause| match cause.downcast_ref::<ClientError>() {
        Some(ClientError::Refused(problem)) => Some(problem),
        _ => None,
    })
}

fn code(error: &anyhow::Error, problem: Option<&Problem>) -> u8 {
    if let Some(problem) = problem {
        return match problem.status {
            404 => NOT_FOUND,
            409 | 410 | 412 | 428 => REFUSED,
            500.. | 429 => UNREACHABLE,
            _ => USAGE,
        };
    }
    let unreachable = error.chain().any(|cause| {
        matches!(
            cause.downcast_ref::<ClientError>(),
            Some(
                ClientError::Unreachable { .. }
                    | ClientError::Unknown { .. }
                    // What stands before a server that is away: a proxy, a balancer.
                    | ClientError::Foreign { status: 500.., .. }
            )
        )
    });
    if unreachable || error.chain().any(is_away) { UNREACHABLE } else { USAGE }
}

/// Whether a server could not start because something that it needs is away, and may come back.
fn is_away(cause: &(dyn std::error::Error + 'static)) -> bool {
    let database = cause.downcast_ref().is_some_and(postgres::OpenError::is_away);
    let bucket = cause.downcast_ref().is_some_and(location::OpenError::is_away);
    let store = matches!(cause.downcast_ref(), Some(StartError::Store(_)));
    database || bucket || store
}

#[cfg(test)]
mod tests;
