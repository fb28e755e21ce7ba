//! What can go wrong with a transaction, told apart by what to do about it.

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
    pub(super) fn of_pool(error: deadpool_postgres::PoolError) -> Self {
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
            Self::Fault(fault) => Failure::Unavailable(shown(fault)),
            Self::Unknown(what) => Failure::Unknown(what.clone()),
            Self::Time => Failure::Unavailable("the clock could not be minded".to_owned()),
        }
    }
}

/// A fault with what caused it: the one who asks cannot see the database's log.
fn shown(fault: &Fault) -> String {
    let mut text = fault.to_string();
    let mut source = std::error::Error::source(fault);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
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
