//! What can go wrong beneath the rules.

/// The engine under a store failed. Never shown to clients as it is.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No room: the transaction was rolled back as a whole, perhaps with its neighbours.
    #[error("the disk is full")]
    Full(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database can be read, and takes no writes now. Nothing was done.
    #[error("the database takes no writes: {0}")]
    ReadOnly(String),
    /// Reading or writing failed.
    #[error("the database failed")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A record was asked for that the running transaction has not fetched yet. Fetched, the
    /// operation is run again.
    #[error("a record was not fetched yet")]
    NotFetched,
    /// A record does not read as what was written.
    #[error("the record {record} is corrupt: {what}")]
    Corrupt {
        /// Which record.
        record: String,
        /// What is wrong with it.
        what: String,
    },
}
