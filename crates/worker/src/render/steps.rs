//! The steps of a recipe, one after the other, as one render with one progress.

use palisade_core::recipe::{Progress, Recipe, Step, Values, Verdict};
use tokio::sync::watch;

use super::{
    RenderError, RenderProgress,
    run::{Listener, Runner, how_ended},
};
use crate::{
    media::{self, FfmpegProgress},
    process::Exit,
};

/// Runs all steps. Answers their command lines. `total_us` is how long the output will be, where
/// the inputs say so.
pub(super) async fn run(
    runner: &mut Runner,
    recipe: &Recipe,
    values: &Values,
    total_us: Option<i64>,
    progress: &watch::Sender<RenderProgress>,
) -> Result<Vec<Vec<String>>, RenderError> {
    let mut commands = Vec::with_capacity(recipe.steps.len());
    let mut before = 0.0;
    for (number, step) in recipe.steps.iter().enumerate() {
        let argv = arguments(step, values)?;
        let share = share_of(step, recipe.steps.len());
        let mut listener = StepListener {
            kind: step.progress,
            ffmpeg: FfmpegProgress::default(),
            total_us,
            share: (before, share),
            progress,
        };
        let ran = runner.run(&argv, &format!("step-{}", number + 1), &mut listener).await?;
        if ran.exit != Exit::Code(0) {
            return Err(failure(recipe, &argv[0], ran.exit, &ran.log));
        }
        before += share;
        commands.push(argv);
    }
    Ok(commands)
}

fn arguments(step: &Step, values: &Values) -> Result<Vec<String>, RenderError> {
    let expanded: Result<Vec<String>, _> =
        step.argv.iter().map(|template| template.expand(values)).collect();
    let expanded =
        expanded.map_err(|error| RenderError::definite("bad_recipe", error.to_string()))?;
    Ok(media::guarded(&step.argv, expanded))
}

fn share_of(step: &Step, count: usize) -> f64 {
    if step.share_percent > 0 {
        return f64::from(step.share_percent);
    }
    100.0 / f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// What an end other than code 0 means.
fn failure(recipe: &Recipe, program: &str, exit: Exit, log: &str) -> RenderError {
    let failure = media::tool_failure(program, &how_ended(exit), log);
    if let Some(reason) = failure.reason {
        return RenderError::retryable(reason, failure.message);
    }
    match exit {
        Exit::Code(code) if recipe.exit_codes.verdict(code) == Verdict::GiveUp => {
            RenderError::definite("tool_failed", failure.message)
        }
        Exit::Code(_) | Exit::Signal(_) | Exit::NannyLost => {
            RenderError::retryable("tool_failed", failure.message)
        }
    }
}

/// Turns what a step writes into the progress of the whole.
struct StepListener<'a> {
    kind: Progress,
    ffmpeg: FfmpegProgress,
    total_us: Option<i64>,
    /// What came before this step and what it is itself, in percent of the whole.
    share: (f64, f64),
    progress: &'a watch::Sender<RenderProgress>,
}

impl Listener for StepListener<'_> {
    fn tells_progress(&self) -> bool {
        self.kind != Progress::None
    }

    fn line(&mut self, line: &str) -> bool {
        match self.kind {
            Progress::None => true,
            Progress::Ffmpeg => {
                let moves = self.ffmpeg.moves;
                if self.ffmpeg.line(line) {
                    let done_us = self.ffmpeg.done_us;
                    let part = done_us.zip(self.total_us).map(|(done, total)| ratio(done, total));
                    self.tell(part);
                }
                self.ffmpeg.moves != moves
            }
            Progress::Lines => match media::percent_line(line) {
                Some(percent) => {
                    self.tell(Some(percent / 100.0));
                    true
                }
                None => false,
            },
        }
    }
}

impl StepListener<'_> {
    /// Tells the progress of the whole; `part` is how much of this step is done, 0 to 1.
    fn tell(&self, part: Option<f64>) {
        let (before, share) = self.share;
        let percent = part.map(|part| before + share * part);
        let done_ms = self.ffmpeg.done_us.and_then(|us| u64::try_from(us / 1_000).ok());
        self.progress.send_modify(|progress| {
            // It never falls, and is 100 only once the outputs are verified.
            let percent = percent.map(|percent| percent.min(WRITTEN_PERCENT_MAX));
            progress.percent = progress.percent.max_by(percent);
            progress.speed = self.ffmpeg.speed;
            progress.done_ms = done_ms;
        });
    }
}

/// The most that is told before the outputs are verified.
const WRITTEN_PERCENT_MAX: f64 = 99.9;

trait MaxBy {
    fn max_by(self, other: Self) -> Self;
}

impl MaxBy for Option<f64> {
    fn max_by(self, other: Self) -> Self {
        match (self, other) {
            (Some(one), Some(two)) => Some(one.max(two)),
            (one, two) => one.or(two),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "µs of a clip are far below 2^53")]
fn ratio(done: i64, total: i64) -> f64 {
    if total <= 0 { 0.0 } else { (done as f64 / total as f64).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests;
