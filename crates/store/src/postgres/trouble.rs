//! What can go wrong with a transaction, told apart by what to do about it.

use std::error::Error;

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::{failure::Failure, fault::Fault};

use super::values::fault;

/// Why a batch came to nothing, or perhaps not to nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nothing was done. Another server was in the way: run it again.
    Again(String),
    /// Nothing was done, and the same again would most likely come to the same.
    Fault(Fault),
    /// Nobody knows whether it is committed.
    Unknown(String),
    /// Nothing was done. Time was not served, or has jumped: it has to be minded first.
    Time,
}

impl Trouble {
    /// An error of anything that was sent before the commit: nothing is done.
    pub(super) fn before_commit(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(code) if is_conflict(code) || is_ending(code) => Self::Again(error.to_string()),
            None if error.is_closed() => Self::Again(error.to_string()),
            _ => Self::Fault(fault(error)),
        }
    }

    /// An error of the commit itself. Only what the database says before it writes the commit
    /// leaves no doubt.
    pub(super) fn of_commit(error: &tokio_postgres::Error) -> Self {
        match error.code() {
            Some(code) if is_conflict(code) => Self::Again(error.to_string()),
            _ => Self::Unknown(error.to_string()),
        }
    }

    /// No connection to be had.
    pub(super) fn of_pool(error: PoolError) -> Self {
        Self::Fault(Fault::Engine(error.into()))
    }

    /// Whether it is another host's turn: this one takes no writes.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self, Self::Fault(Fault::ReadOnly(_)))
    }

    /// What whoever asked is told.
    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::Again(what) => {
                Failure::Unavailable(format!("other servers were in the way too often: {what}"))
            }
            // With what caused it: the one who asks cannot see the database's log.
            Self::Fault(fault) => Failure::Unavailable(palisade_core::with_causes(fault)),
            Self::Unknown(what) => Failure::Unknown(what.clone()),
            Self::Time => Failure::Unavailable("the clock could not be minded".to_owned()),
        }
    }
}

/// Whether the database may well be there later: it could not be reached, or is starting or ending.
/// A password that it refuses, or a database that it does not have, is somebody's to set right.
pub(super) fn is_away(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
            return is_unreachable(error);
        }
        if let Some(PoolError::Timeout(_)) = error.downcast_ref::<PoolError>() {
            return true;
        }
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return !matches!(failure, Failure::Refused(_));
        }
        cause = error.source();
    }
    false
}

fn is_unreachable(error: &tokio_postgres::Error) -> bool {
    if let Some(code) = error.code() {
        let is_connection = code.code().starts_with("08");
        return is_connection || is_ending(code) || *code == SqlState::TOO_MANY_CONNECTIONS;
    }
    let of_system = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    match of_system {
        // What came is no answer of PostgreSQL's, or a certificate that is not trusted.
        Some(of_system) => of_system.kind() != std::io::ErrorKind::InvalidData,
        // The driver does not tell its kinds apart but by their words.
        None => error.is_closed() || error.to_string().starts_with("timeout"),
    }
}

/// The connection is ended, or the database is; the next one may be there.
fn is_ending(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ]
    .contains(code)
}

/// Others were in the way: a deadlock, a row that is not as it was read, a row that somebody else
/// made first, a lock that was not to be had in time.
fn is_conflict(code: &SqlState) -> bool {
    [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNIQUE_VIOLATION,
        SqlState::LOCK_NOT_AVAILABLE,
    ]
    .contains(code)
}

#[cfg(test)]
mod tests;
