//! The fake server's verbs.

use std::path::Path;

use async_trait::async_trait;
use bytes::Bytes;
use palisade_api::wire::{
    ClaimRequest, ClaimResponse, CompleteRequest, CompleteResponse, FailRequest, HeartbeatRequest,
    HeartbeatResponse, LeaseAnswer, LeaseStatus, ProgressRequest, ReleaseRequest, ReleasedWire,
    RequeuedResponse, SessionEvent,
};
use palisade_core::{Digest, JobId, Timestamp, lease::Pair};
use tokio::sync::mpsc;

use super::server::{FakeServer, Fault, Standing, State, Verb, refused};
use crate::control_plane::{CallError, Chunks, ControlPlane, SessionEvents};

impl FakeServer {
    /// Does a call as its script has it.
    async fn scripted<T>(
        &self,
        verb: Verb,
        call: impl Future<Output = Result<T, CallError>> + Send,
    ) -> Result<T, CallError> {
        let unconfirmed = |message: &str| CallError::Unconfirmed { message: message.to_owned() };
        let fault = self.fault(verb);
        let answer = match fault {
            None => call.await,
            Some(Fault::Away) => Err(unconfirmed("scripted: away")),
            Some(Fault::Refuse(problem)) => Err(CallError::Refused(problem)),
            Some(Fault::First(happens)) => {
                happens(&mut self.state());
                call.await
            }
            Some(Fault::LoseReply) => {
                let _ = call.await;
                Err(unconfirmed("scripted: the reply was lost"))
            }
            Some(Fault::Hang) => {
                let _ = call.await;
                self.change();
                std::future::pending().await
            }
        };
        self.change();
        answer
    }

    async fn wait_for_jobs(&self, claim: &ClaimRequest, since: Timestamp) -> ClaimResponse {
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            let waited_ms = self.timer.now().since_ms(since);
            let grants = self.state().grant(claim, waited_ms);
            if !grants.is_empty() {
                return ClaimResponse { grants, lost: Vec::new() };
            }
            let _ = changes.changed().await;
        }
    }

    fn granted_before(&self, claim: &ClaimRequest) -> Option<ClaimResponse> {
        let state = self.state();
        let mine = state.attempts.values().filter(|attempt| attempt.claim == claim.request_id);
        let mut response = ClaimResponse::default();
        for attempt in mine {
            match attempt.standing {
                Standing::Open => response.grants.push(attempt.grant.clone()),
                Standing::Closed(_) => response.lost.push(State::lease(attempt)),
            }
        }
        (!response.grants.is_empty() || !response.lost.is_empty()).then_some(response)
    }

    fn renew(&self, beat: &HeartbeatRequest) -> HeartbeatResponse {
        let mut state = self.state();
        let leases = beat.leases.iter().map(|lease| {
            let standing = state.attempts.get(&lease.token).map(|a| a.standing.clone());
            let (status, reason) = match standing {
                None => (LeaseStatus::UnknownToken, None),
                Some(Standing::Open) => (LeaseStatus::Held, None),
                Some(Standing::Closed("cancelled")) => (LeaseStatus::Cancelled, None),
                Some(Standing::Closed(reason)) => (LeaseStatus::Lost, Some(reason.to_owned())),
            };
            let (job, token) = (lease.job.clone(), lease.token);
            LeaseAnswer { job, token, status, reason, fence: None, completed_by: None }
        });
        let leases = leases.collect();
        let mut released = Vec::new();
        if beat.seq > state.seen_seq {
            state.seen_seq = beat.seq;
            for (token, attempt) in &mut state.attempts {
                let listed = beat.leases.iter().any(|lease| lease.token == *token);
                let pending = beat.pending.contains(&attempt.claim);
                let sent_before = attempt.claim_seq < beat.seq && attempt.session == beat.session;
                if attempt.standing == Standing::Open && sent_before && !listed && !pending {
                    attempt.standing = Standing::Closed("released");
                    released.push(ReleasedWire { job: attempt.grant.job.clone(), token: *token });
                }
            }
        }
        HeartbeatResponse { leases, released }
    }
}

#[async_trait]
impl ControlPlane for FakeServer {
    async fn claim(&self, claim: &ClaimRequest) -> Result<ClaimResponse, CallError> {
        self.state().claims.push(claim.clone());
        self.change();
        let since = self.timer.now();
        self.scripted(Verb::Claim, async {
            if let Some(before) = self.granted_before(claim) {
                return Ok(before);
            }
            let over = self.timer.sleep_until(since.plus_ms(claim.wait_ms));
            Ok(tokio::select! {
                biased;
                response = self.wait_for_jobs(claim, since) => response,
                () = over => ClaimResponse::default(),
            })
        })
        .await
    }

    async fn heartbeat(
        &self,
        beat: &HeartbeatRequest,
        _timeout_ms: u64,
    ) -> Result<HeartbeatResponse, CallError> {
        self.state().beats.push(beat.clone());
        self.scripted(Verb::Heartbeat, async { Ok(self.renew(beat)) }).await
    }

    async fn progress(&self, _progress: &ProgressRequest) -> Result<(), CallError> {
        Ok(())
    }

    async fn complete(
        &self,
        job: JobId,
        complete: &CompleteRequest,
    ) -> Result<CompleteResponse, CallError> {
        self.state().completes.push(complete.clone());
        self.scripted(Verb::Complete, async {
            let mut state = self.state();
            let digests = complete.manifest.outputs.iter().map(|output| output.digest);
            if !digests.clone().all(|digest| state.uploaded.contains_key(&digest)) {
                return Err(refused(422, "missing_blob"));
            }
            let (job, lease) = (job.to_string(), &complete.lease);
            let attempt = state.attempt(&job, complete.token, lease, "completed")?;
            attempt.standing = Standing::Closed("completed");
            Ok(CompleteResponse {
                completed_by: complete.token,
                completed_at_ms: 0,
                manifest_differs: false,
                manifest: complete.manifest.clone(),
            })
        })
        .await
    }

    async fn fail(&self, job: JobId, fail: &FailRequest) -> Result<RequeuedResponse, CallError> {
        self.state().fails.push(fail.clone());
        self.scripted(Verb::Fail, async {
            let mut state = self.state();
            let attempt = state.attempt(&job.to_string(), fail.token, &fail.lease, "failed")?;
            attempt.standing = Standing::Closed("failed");
            Ok(RequeuedResponse { state: "failed".to_owned(), run_at_ms: None })
        })
        .await
    }

    async fn release(
        &self,
        job: JobId,
        release: &ReleaseRequest,
    ) -> Result<RequeuedResponse, CallError> {
        self.state().releases.push(release.clone());
        self.scripted(Verb::Release, async {
            let mut state = self.state();
            let job = job.to_string();
            let attempt = state.attempt(&job, release.token, &release.lease, "released")?;
            attempt.standing = Standing::Closed("released");
            Ok(RequeuedResponse { state: "queued".to_owned(), run_at_ms: None })
        })
        .await
    }

    async fn session(
        &self,
        _worker: &str,
        _session: &str,
    ) -> Result<Box<dyn SessionEvents>, CallError> {
        let opened = self.scripted(Verb::Session, async {
            let (sender, receiver) = mpsc::unbounded_channel();
            sender.send(SessionEvent::Open).unwrap();
            self.state().sessions.push(sender);
            Ok(Stream(receiver))
        });
        Ok(Box::new(opened.await?))
    }

    async fn blob(&self, digest: Digest) -> Result<Box<dyn Chunks>, CallError> {
        let found = self.scripted(Verb::Blob, async {
            let bytes = self.state().blobs.get(&digest).cloned();
            bytes.ok_or_else(|| refused(404, "not_found"))
        });
        Ok(Box::new(Pieces(found.await?)))
    }

    async fn upload(
        &self,
        path: &Path,
        job: JobId,
        pair: Pair,
    ) -> Result<(Digest, u64), CallError> {
        self.scripted(Verb::Upload, async {
            let bytes = std::fs::read(path).unwrap();
            let mut state = self.state();
            let lease = pair.lease_id.to_string();
            state.attempt(&job.to_string(), pair.token.get(), &lease, "")?;
            let (digest, size_bytes) = (Digest::of(&bytes), bytes.len() as u64);
            state.uploaded.insert(digest, bytes);
            Ok((digest, size_bytes))
        })
        .await
    }
}

struct Stream(mpsc::UnboundedReceiver<SessionEvent>);

#[async_trait]
impl SessionEvents for Stream {
    async fn next(&mut self) -> Result<Option<SessionEvent>, CallError> {
        Ok(self.0.recv().await)
    }
}

/// In two pieces, so that the seam is passed.
struct Pieces(Bytes);

#[async_trait]
impl Chunks for Pieces {
    async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        let size = self.0.len().div_ceil(2);
        let piece = self.0.split_to(size);
        Ok((!piece.is_empty()).then_some(piece))
    }
}
