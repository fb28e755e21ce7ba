//! What a worker calls: claim, heartbeat, complete, fail, release, and its session's stream.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use reqwest::Method;

use crate::wire::{
    ClaimRequest, ClaimResponse, CompleteRequest, CompleteResponse, FailRequest, HeartbeatRequest,
    HeartbeatResponse, ProgressRequest, ReleaseRequest, RequeuedResponse, SessionEvent,
};

use super::{CALL_TIMEOUT, Client, ClientError, foreign, origin};

impl Client {
    /// Asks for jobs; waits for `wait_ms` at the server.
    pub async fn claim(&self, claim: &ClaimRequest) -> Result<ClaimResponse, ClientError> {
        let timeout = Duration::from_millis(claim.wait_ms) + CALL_TIMEOUT;
        self.json(self.request(Method::POST, "/claims").timeout(timeout).json(claim)).await
    }

    /// Renews all leases of a session. `timeout` is short: a late answer is worth little.
    pub async fn heartbeat(
        &self,
        beat: &HeartbeatRequest,
        timeout: Duration,
    ) -> Result<HeartbeatResponse, ClientError> {
        self.json(self.request(Method::POST, "/heartbeats").timeout(timeout).json(beat)).await
    }

    /// Tells how far the session's renders are. Hearsay; a lost one is no loss.
    pub async fn progress(&self, progress: &ProgressRequest) -> Result<(), ClientError> {
        let request = self.request(Method::POST, "/progress").json(progress);
        self.send(request).await.map(|_| ())
    }

    /// Commits an attempt.
    pub async fn complete(
        &self,
        job: &str,
        complete: &CompleteRequest,
    ) -> Result<CompleteResponse, ClientError> {
        self.post(&format!("/jobs/{job}/complete"), complete).await
    }

    /// Reports a failed attempt.
    pub async fn fail(
        &self,
        job: &str,
        fail: &FailRequest,
    ) -> Result<RequeuedResponse, ClientError> {
        self.post(&format!("/jobs/{job}/fail"), fail).await
    }

    /// Hands an attempt back.
    pub async fn release(
        &self,
        job: &str,
        release: &ReleaseRequest,
    ) -> Result<RequeuedResponse, ClientError> {
        self.post(&format!("/jobs/{job}/release"), release).await
    }

    /// Opens a session's stream. It has no time limit: its end is what tells that the connection
    /// broke.
    pub async fn session(&self, worker: &str, session: &str) -> Result<SessionStream, ClientError> {
        let url = format!("{}/v1/workers/{worker}/session?session={session}", self.url());
        let response = self.send(self.http.get(url)).await?;
        let origin = origin(response.url());
        let chunks = response.bytes_stream().boxed();
        Ok(SessionStream { client: self.clone(), origin, chunks, rest: Vec::new() })
    }
}

/// A session's stream: events, a JSON object a line.
pub struct SessionStream {
    client: Client,
    /// Who sends it, for errors.
    origin: String,
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    rest: Vec<u8>,
}

/// Longest line of a session's stream, in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

impl SessionStream {
    /// The next event. None: the server ended the stream.
    pub async fn next(&mut self) -> Result<Option<SessionEvent>, ClientError> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.rest.drain(..=end).collect();
                return match serde_json::from_slice(&line) {
                    Ok(event) => Ok(Some(event)),
                    Err(_) => Err(foreign(self.origin.clone(), 200, &line)),
                };
            }
            if self.rest.len() > LINE_BYTES_MAX {
                return Err(foreign(self.origin.clone(), 200, &self.rest));
            }
            match self.chunks.next().await {
                None => return Ok(None),
                Some(chunk) => {
                    let chunk = chunk.map_err(|error| self.client.broken(error))?;
                    self.rest.extend_from_slice(&chunk);
                }
            }
        }
    }
}

impl std::fmt::Debug for SessionStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SessionStream")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
