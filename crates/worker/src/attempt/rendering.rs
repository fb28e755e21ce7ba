//! The render itself, steered by the attempt's switch.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use palisade_api::wire::{ProgressRequest, ProgressView, ProgressWire};
use palisade_core::{InputName, Timestamp};

use super::{Attempt, Stop, failure};
use crate::{
    data_dir::AttemptFolders,
    events::What,
    render::{RenderError, RenderProgress, RenderRequest, Rendered},
    runner::Run,
    switch::Phase,
    timer::sleep_ms,
};

/// Progress is told this often at most, in ms.
const PROGRESS_MS: u64 = 500;
/// How long a render that was killed may take to be gone, in ms. Then it is dropped, and its
/// folder removed all the same.
const KILL_MS: u64 = 30_000;

impl Attempt {
    pub(super) async fn render(
        &self,
        folders: &AttemptFolders,
        inputs: BTreeMap<InputName, PathBuf>,
    ) -> Result<Rendered, Stop> {
        let desk = &self.around.desk;
        desk.permit(self.token(), &self.switch).await.map_err(Stop::Ended)?;
        let run = self.around.runner.start(RenderRequest {
            recipe: Arc::clone(&self.assignment.recipe),
            parameters: self.assignment.parameters.clone(),
            inputs,
            scratch: folders.scratch.clone(),
        });
        self.switch.attach(Arc::clone(&run.steer));
        self.emit(What::Started);
        let outcome = self.watch(run).await;
        self.switch.detach();
        // Whatever it says: an attempt that was ended has nothing to commit or report.
        if let Phase::Ended(end) = self.switch.phase() {
            return Err(Stop::Ended(end));
        }
        match outcome {
            Some(Ok(rendered)) => Ok(rendered),
            Some(Err(RenderError::Failed(reported))) => Err(Stop::Failed(reported)),
            Some(Err(RenderError::Killed)) | None => {
                Err(failure("killed", "the render was ended from outside".to_owned()))
            }
        }
    }

    /// Waits for the outcome and tells of progress. None: it was killed and did not go.
    async fn watch(&self, run: Run) -> Option<Result<Rendered, RenderError>> {
        let timer = &*self.around.desk.timer;
        let Run { steer: _, mut progress, mut outcome } = run;
        let overdue = async {
            self.switch.ended().await;
            sleep_ms(timer, KILL_MS).await;
        };
        tokio::pin!(overdue);
        let mut told_at = Timestamp::default();
        let mut listening = true;
        loop {
            tokio::select! {
                biased;
                outcome = &mut outcome => return Some(outcome),
                () = &mut overdue => return None,
                changed = progress.changed(), if listening => {
                    listening = changed.is_ok();
                    let now = timer.now();
                    if listening && now.since_ms(told_at) >= PROGRESS_MS {
                        told_at = now;
                        let seen = *progress.borrow_and_update();
                        let RenderProgress { percent, speed, .. } = seen;
                        self.emit(What::Progress { percent, speed });
                        self.tell_server(seen);
                    }
                }
            }
        }
    }

    /// Tells the server how far the render is, beside everything else: a server that is slow or
    /// away holds nothing up.
    fn tell_server(&self, seen: RenderProgress) {
        let share = seen.percent.map(|percent| percent / 100.0);
        let progress = ProgressView { share, speed: seen.speed, left_ms: left_ms(seen) };
        let request = ProgressRequest {
            session: self.around.desk.session().to_string(),
            renders: vec![ProgressWire {
                job: self.assignment.job.to_string(),
                token: self.assignment.pair.token.get(),
                lease: self.assignment.pair.lease_id.to_string(),
                progress,
            }],
        };
        let plane = Arc::clone(&self.around.plane);
        tokio::spawn(async move {
            // Hearsay: the next one comes soon.
            let _ = plane.progress(&request).await;
        });
    }
}

/// How long the rest takes at the pace that the tool says: only where the length, the time done
/// and the pace are known, rather than made up.
fn left_ms(seen: RenderProgress) -> Option<u64> {
    let (percent, speed, done_ms) = (seen.percent?, seen.speed?, seen.done_ms?);
    if percent < 1.0 || speed <= 0.0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a clip of 2^52 ms lasts 140,000 years")]
    let rest_ms = done_ms as f64 * (100.0 - percent).max(0.0) / percent;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    Some((rest_ms / speed) as u64)
}
