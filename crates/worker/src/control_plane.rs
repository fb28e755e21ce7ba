//! The seam to the server: the verbs of a worker. HTTP in production; a script in tests, a
//! simulated network in simulations.

mod direct;
mod http;

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use palisade_api::{
    Problem,
    wire::{
        ClaimRequest, ClaimResponse, CompleteRequest, CompleteResponse, FailRequest,
        HeartbeatRequest, HeartbeatResponse, ProgressRequest, ReleaseRequest, RequeuedResponse,
        SessionEvent,
    },
};
use palisade_core::{Digest, JobId, lease::Pair};

pub use http::HttpConnector;

/// Makes connections that share nothing: neither sockets nor a runtime.
pub trait Connector: Send + Sync + std::fmt::Debug {
    /// A connection for whoever runs on this runtime. Nothing is sent yet.
    fn connect(&self) -> Result<Box<dyn ControlPlane>, CallError>;
}

/// The verbs of a worker. Dropping a call gives it up; it may have arrived all the same.
#[async_trait]
pub trait ControlPlane: Send + Sync + std::fmt::Debug {
    /// Asks for jobs; waits at the server for as long as the claim says.
    async fn claim(&self, claim: &ClaimRequest) -> Result<ClaimResponse, CallError>;

    /// Renews all leases of a session.
    async fn heartbeat(
        &self,
        beat: &HeartbeatRequest,
        timeout_ms: u64,
    ) -> Result<HeartbeatResponse, CallError>;

    /// Tells how far renders are. Hearsay; a lost one is no loss.
    async fn progress(&self, progress: &ProgressRequest) -> Result<(), CallError>;

    /// Commits an attempt.
    async fn complete(
        &self,
        job: JobId,
        complete: &CompleteRequest,
    ) -> Result<CompleteResponse, CallError>;

    /// Reports a failed attempt.
    async fn fail(&self, job: JobId, fail: &FailRequest) -> Result<RequeuedResponse, CallError>;

    /// Hands an attempt back.
    async fn release(
        &self,
        job: JobId,
        release: &ReleaseRequest,
    ) -> Result<RequeuedResponse, CallError>;

    /// Opens a session's stream.
    async fn session(
        &self,
        worker: &str,
        session: &str,
    ) -> Result<Box<dyn SessionEvents>, CallError>;

    /// Streams a blob.
    async fn blob(&self, digest: Digest) -> Result<Box<dyn Chunks>, CallError>;

    /// Uploads an output of an attempt, unless its bytes are there already. Answers the digest
    /// and the length of what was read.
    async fn upload(&self, path: &Path, job: JobId, pair: Pair)
    -> Result<(Digest, u64), CallError>;
}

/// A session's stream.
#[async_trait]
pub trait SessionEvents: Send {
    /// The next event. None: the server ended the stream.
    async fn next(&mut self) -> Result<Option<SessionEvent>, CallError>;
}

/// Bytes on their way down.
#[async_trait]
pub trait Chunks: Send {
    /// The next piece. None: all of it has come.
    async fn next(&mut self) -> Result<Option<Bytes>, CallError>;
}

/// Why a call came to nothing, told apart by what a worker can do.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server refused it, with a stable code. Asking again changes nothing.
    #[error("{0}")]
    Refused(Problem),
    /// It was not done, or nobody knows: the server is away, is overloaded, does not let us in,
    /// or its answer was lost. The same may be asked again, with the same ids.
    #[error("{message}")]
    Unconfirmed {
        /// What happened.
        message: String,
    },
    /// A file of the worker's own could not be read.
    #[error("cannot read {path}: {message}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        message: String,
    },
    /// The server's address cannot be used at all.
    #[error("{message}")]
    Address {
        /// Why not.
        message: String,
    },
}

impl CallError {
    /// The stable code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(problem) => Some(&problem.code),
            Self::Unconfirmed { .. } | Self::File { .. } | Self::Address { .. } => None,
        }
    }
}
