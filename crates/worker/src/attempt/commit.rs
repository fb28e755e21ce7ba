//! The commit: outputs up, the keeper's last word, and then one request that is repeated until it
//! is answered.

use palisade_api::wire::{CompleteRequest, CompleteResponse};
use palisade_core::{
    job::{Failure, FailureKind},
    manifest::Manifest,
};

use super::{Attempt, Stop, effects::definite, failure};
use crate::{
    backoff::Backoff, control_plane::CallError, events::What, render::Rendered, timer::sleep_ms,
};

/// How often blobs that the server misses are sent again before the attempt has failed.
const REUPLOADS_MAX: u32 = 5;

impl Attempt {
    pub(super) async fn commit(&self, rendered: Rendered) -> Result<CompleteResponse, Stop> {
        let size_bytes = rendered.outputs.iter().map(|output| output.size_bytes).sum();
        self.emit(What::Uploading { outputs: rendered.outputs.len(), size_bytes });
        let mut manifest = self.upload(&rendered).await?;
        let desk = &self.around.desk;
        desk.completing(self.token(), &self.switch).await.map_err(Stop::Ended)?;
        self.emit(What::Completing);
        // Others may run between the last word and the request. That gap cannot be closed: the
        // fence is what refuses a completion that was held up in it.
        tokio::task::yield_now().await;
        for _ in 0..=REUPLOADS_MAX {
            match self.complete_until_answered(&manifest).await {
                Ok(response) => return Ok(response),
                Err(CallError::Refused(problem)) if problem.code == "missing_blob" => {
                    // The attempt is open still: what is missing may be brought.
                    manifest = self.upload(&rendered).await?;
                }
                Err(CallError::Refused(problem)) if problem.code == "invalid" => {
                    // The same manifest would come of every other try.
                    let message = format!("the server does not take the manifest: {problem}");
                    let (reason, kind) = ("bad_manifest".to_owned(), FailureKind::Final);
                    return Err(Stop::Failed(Failure { reason, message, kind }));
                }
                Err(error) => return Err(definite("complete", error)),
            }
        }
        let message = "the server misses outputs that it was sent, again and again".to_owned();
        Err(failure("upload_lost", message))
    }

    /// Repeats the complete until it is answered, one way or the other, also when the operator
    /// ends the attempt: its outcome may be unknown, and nothing else may contradict it.
    async fn complete_until_answered(
        &self,
        manifest: &Manifest,
    ) -> Result<CompleteResponse, CallError> {
        let desk = &self.around.desk;
        let pair = self.assignment.pair;
        let request = CompleteRequest {
            token: pair.token.get(),
            lease: pair.lease_id.to_string(),
            manifest: manifest.clone(),
        };
        let mut backoff = Backoff::of_calls();
        loop {
            match self.around.plane.complete(self.assignment.job, &request).await {
                Err(error @ CallError::Unconfirmed { .. }) => {
                    desk.unconfirmed(&error);
                    sleep_ms(&*desk.timer, backoff.next_ms(&*desk.entropy)).await;
                }
                answer => {
                    desk.confirmed();
                    return answer;
                }
            }
        }
    }
}
