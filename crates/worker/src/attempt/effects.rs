//! Calls that must not be made without the keeper's leave, and what is reported at the end.

use std::fmt::Display;

use futures_util::future::BoxFuture;
use palisade_api::wire::{FailRequest, ReleaseRequest};
use palisade_core::job::{Failure, FailureKind};

use super::{Attempt, Stop, failure};
use crate::{
    backoff::Backoff,
    control_plane::CallError,
    events::What,
    switch::End,
    timer::{sleep_ms, within_ms},
};

/// A call on its way.
pub(super) type Call<'call, T> = BoxFuture<'call, Result<T, CallError>>;

/// How long a grant is tried to be handed back, in ms; after that the next heartbeat says so.
const RELEASE_MS: u64 = 5_000;

impl Attempt {
    /// Makes a call that has an effect, or costs much, for as long as the keeper allows it: asked
    /// before each try, and given up when doubt comes up in the middle, to begin anew when the
    /// lease is held after all. Repeated until it is answered.
    pub(super) async fn effect<'call, T>(
        &self,
        verb: &'static str,
        call: impl Fn() -> Call<'call, T> + Send,
    ) -> Result<T, Stop> {
        let desk = &self.around.desk;
        let mut backoff = Backoff::of_calls();
        loop {
            desk.permit(self.token(), &self.switch).await.map_err(Stop::Ended)?;
            let answer = tokio::select! {
                biased;
                () = self.switch.interrupted() => continue,
                answer = call() => answer,
            };
            match answer {
                Ok(answer) => {
                    desk.confirmed();
                    return Ok(answer);
                }
                Err(error @ CallError::Unconfirmed { .. }) => {
                    desk.unconfirmed(&error);
                    self.wait(backoff.next_ms(&*desk.entropy)).await?;
                }
                Err(error) => return Err(definite(verb, error)),
            }
        }
    }

    /// Waits, unless the attempt ends meanwhile.
    pub(super) async fn wait(&self, ms: u64) -> Result<(), Stop> {
        tokio::select! {
            biased;
            end = self.switch.ended() => Err(Stop::Ended(end)),
            () = sleep_ms(&*self.around.desk.timer, ms) => Ok(()),
        }
    }

    /// Reports a failure until it is answered or the lease is lost.
    pub(super) async fn fail(&mut self, failure: Failure) {
        let pair = self.assignment.pair;
        let request = FailRequest {
            token: pair.token.get(),
            lease: pair.lease_id.to_string(),
            reason: failure.reason.clone(),
            message: failure.message.clone(),
            is_final: failure.kind == FailureKind::Final,
        };
        let (plane, job) = (&self.around.plane, self.assignment.job);
        let answer = self.effect("fail", || plane.fail(job, &request)).await;
        match answer {
            Ok(_requeued) => {
                self.lease.let_go();
                let Failure { reason, message, .. } = failure;
                self.emit(What::Failed { reason, message, is_final: request.is_final });
            }
            Err(Stop::Refused { verb, problem }) => self.refused(verb, problem),
            Err(Stop::Ended(End::Aborted { reason, detail })) => self.aborted(reason, detail),
            Err(Stop::Ended(End::HandedBack)) => {
                self.release(format!("the worker stops; unreported: {}", failure.message)).await;
            }
            Err(Stop::Failed(refused)) => {
                // The server does not take the report itself: the attempt is given back instead.
                self.release(format!("its failure was not taken: {}", refused.message)).await;
            }
            Err(Stop::NoRoom(_)) => unreachable!("a report needs no room"),
        }
    }

    /// Hands the grant back. If the server does not answer in time, the next heartbeat does it.
    pub(super) async fn release(&mut self, why: String) {
        let desk = &self.around.desk;
        if within_ms(&*desk.timer, RELEASE_MS, self.try_release()).await.is_some() {
            self.lease.let_go();
        }
        self.emit(What::Released { why });
    }

    /// Until it is answered, one way or the other.
    async fn try_release(&self) {
        let desk = &self.around.desk;
        let pair = self.assignment.pair;
        let request = ReleaseRequest { token: pair.token.get(), lease: pair.lease_id.to_string() };
        let mut backoff = Backoff::of_calls();
        while let Err(CallError::Unconfirmed { .. }) =
            self.around.plane.release(self.assignment.job, &request).await
        {
            sleep_ms(&*desk.timer, backoff.next_ms(&*desk.entropy)).await;
        }
    }
}

/// What an answer that asking again does not change means for the attempt.
pub(super) fn definite(verb: &'static str, error: CallError) -> Stop {
    let refused = |problem: &dyn Display| format!("the server refused to {verb}: {problem}");
    match error {
        CallError::Refused(problem) if replaced(&problem.code) => Stop::Refused { verb, problem },
        CallError::Refused(problem) if problem.status == 507 => {
            failure("disk_full", refused(&problem))
        }
        CallError::Refused(problem) => failure(&format!("{verb}_refused"), refused(&problem)),
        error @ (CallError::File { .. }
        | CallError::Address { .. }
        | CallError::Unconfirmed { .. }) => failure("worker_io", error.to_string()),
    }
}

/// Codes that say that this attempt is over: stop, discard, report nothing.
fn replaced(code: &str) -> bool {
    matches!(code, "stale_token" | "already_complete" | "unknown_token" | "lease_lost")
}
