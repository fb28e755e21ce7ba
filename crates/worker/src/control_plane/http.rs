//! The verbs over HTTP.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use palisade_api::{
    Client, ClientError,
    client::{Download, SessionStream, Upload},
    wire::{
        ClaimRequest, ClaimResponse, CompleteRequest, CompleteResponse, FailRequest,
        HeartbeatRequest, HeartbeatResponse, ProgressRequest, ReleaseRequest, RequeuedResponse,
        SessionEvent,
    },
};
use palisade_artefacts::Blobs;
use palisade_core::{Digest, JobId, lease::Pair, with_causes};

use super::{CallError, Chunks, Connector, ControlPlane, SessionEvents, direct};

/// Connects to a server by its address.
#[derive(Clone)]
pub struct HttpConnector {
    url: String,
    token: Option<String>,
    blobs: Option<Arc<dyn Blobs>>,
}

impl HttpConnector {
    /// For the server at `url` (`http://127.0.0.1:7070`), with the token that it asks for, if it
    /// asks for one.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, CallError> {
        let token = token.map(str::to_owned);
        let connector = Self { url: url.to_owned(), token, blobs: None };
        connector.client()?;
        Ok(connector)
    }

    /// The same, bringing outputs to where the server's blobs live without it in between.
    #[must_use]
    pub fn with_blobs(self, blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs: Some(blobs), ..self }
    }

    fn client(&self) -> Result<Client, CallError> {
        Ok(match &self.token {
            Some(token) => Client::with_token(&self.url, token)?,
            None => Client::new(&self.url)?,
        })
    }
}

impl Connector for HttpConnector {
    fn connect(&self) -> Result<Box<dyn ControlPlane>, CallError> {
        Ok(Box::new(HttpPlane { client: self.client()?, blobs: self.blobs.clone() }))
    }
}

impl std::fmt::Debug for HttpConnector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the token: what is debugged ends in logs.
        formatter.debug_struct("HttpConnector").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A connection: the server's, and the blobs' if this worker sees them.
#[derive(Debug)]
struct HttpPlane {
    client: Client,
    blobs: Option<Arc<dyn Blobs>>,
}

#[async_trait]
impl ControlPlane for HttpPlane {
    async fn claim(&self, claim: &ClaimRequest) -> Result<ClaimResponse, CallError> {
        Ok(self.client.claim(claim).await?)
    }

    async fn heartbeat(
        &self,
        beat: &HeartbeatRequest,
        timeout_ms: u64,
    ) -> Result<HeartbeatResponse, CallError> {
        Ok(self.client.heartbeat(beat, Duration::from_millis(timeout_ms)).await?)
    }

    async fn progress(&self, progress: &ProgressRequest) -> Result<(), CallError> {
        Ok(self.client.progress(progress).await?)
    }

    async fn complete(
        &self,
        job: JobId,
        complete: &CompleteRequest,
    ) -> Result<CompleteResponse, CallError> {
        Ok(self.client.complete(&job.to_string(), complete).await?)
    }

    async fn fail(&self, job: JobId, fail: &FailRequest) -> Result<RequeuedResponse, CallError> {
        Ok(self.client.fail(&job.to_string(), fail).await?)
    }

    async fn release(
        &self,
        job: JobId,
        release: &ReleaseRequest,
    ) -> Result<RequeuedResponse, CallError> {
        Ok(self.client.release(&job.to_string(), release).await?)
    }

    async fn session(
        &self,
        worker: &str,
        session: &str,
    ) -> Result<Box<dyn SessionEvents>, CallError> {
        Ok(Box::new(self.client.session(worker, session).await?))
    }

    async fn blob(&self, digest: Digest) -> Result<Box<dyn Chunks>, CallError> {
        Ok(Box::new(self.client.blob(digest).await?))
    }

    async fn upload(
        &self,
        path: &Path,
        job: JobId,
        pair: Pair,
    ) -> Result<(Digest, u64), CallError> {
        let purpose = Upload::Output { job: job.to_string(), pair };
        match &self.blobs {
            Some(blobs) => direct::upload(&self.client, blobs, path, &purpose).await,
            None => Ok(self.client.upload(path, &purpose).await?),
        }
    }
}

#[async_trait]
impl SessionEvents for SessionStream {
    async fn next(&mut self) -> Result<Option<SessionEvent>, CallError> {
        Ok(Self::next(self).await?)
    }
}

#[async_trait]
impl Chunks for Download {
    async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        Ok(Self::next(self).await?)
    }
}

impl From<ClientError> for CallError {
    fn from(error: ClientError) -> Self {
        let message = with_causes(&error);
        match error {
            // Full is an answer, although its status is a server's fault: asking again at once
            // would find it full again.
            ClientError::Refused(problem) if problem.status == 507 => Self::Refused(problem),
            error if error.is_unconfirmed() => Self::Unconfirmed { message },
            ClientError::Refused(problem) => Self::Refused(problem),
            ClientError::File { path, source } => Self::File { path, message: source.to_string() },
            ClientError::Address { .. }
            | ClientError::Token
            | ClientError::Local { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Unknown { .. }
            | ClientError::Foreign { .. } => Self::Address { message },
        }
    }
}
