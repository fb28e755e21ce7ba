//! The demonstration: real exports on real workers, one of which is killed and two of which are
//! paused, and every export ends up there exactly once.

mod checks;
mod report;
mod story;

pub use report::Report;

use std::path::PathBuf;

use crate::drill::DrillError;

/// Where the demonstration runs.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// The `palisade` binary.
    pub program: PathBuf,
    /// An empty folder of its own; the results stay there.
    pub dir: PathBuf,
    /// Seconds of video in the longest clip; the others follow from it.
    pub seconds: u32,
    /// Where several servers have their records and blobs in common. None: one server, with all of
    /// it in its folder.
    pub shared: Option<SharedPlaces>,
}

/// What several servers have in common.
#[derive(Debug, Clone)]
pub struct SharedPlaces {
    /// How many servers; at least two, for one of them is killed.
    pub servers: usize,
    /// The store's address, for `serve --store`.
    pub store: String,
    /// The blobs' address, for `serve --artefacts`.
    pub artefacts: String,
}

/// Runs it, telling what happens as it happens. All that it starts has ended when it returns.
pub async fn run(options: &DemoOptions, tell: &mut dyn FnMut(&str)) -> Result<Report, DrillError> {
    let mut scene = story::Scene::set(options, tell).await?;
    scene.play(tell).await?;
    let report = scene.look().await?;
    scene.end().await;
    Ok(report)
}
