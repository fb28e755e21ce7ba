//! The runner of production: renders through [`crate::render`], with real children.

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use palisade_core::recipe::RecipeBook;
use tokio::sync::watch;

use crate::{
    media::ToolIdentity,
    process::leftovers,
    render::{RenderControl, RenderError, RenderProgress, RenderRequest, Renderer},
    runner::{Run, Runner, Steer},
};

/// Renders with the tools that were found when it was made.
#[derive(Debug)]
pub struct RenderRunner {
    renderer: Renderer,
    tools: BTreeMap<String, ToolIdentity>,
}

impl RenderRunner {
    /// Asks every tool that the book's recipes name which build it is. `folder` is any folder of
    /// the worker's own. Also answers why tools could not be asked: their recipes are not offered.
    pub async fn find_tools(
        renderer: Renderer,
        recipes: &RecipeBook,
        folder: &Path,
    ) -> (Self, BTreeMap<String, RenderError>) {
        let mut tools = BTreeMap::new();
        let mut missing = BTreeMap::new();
        for recipe in recipes.iter() {
            let name = &recipe.tool.name;
            if tools.contains_key(name) || missing.contains_key(name) {
                continue;
            }
            match renderer.identify(name, folder).await {
                Ok(identity) => drop(tools.insert(name.clone(), identity)),
                Err(error) => drop(missing.insert(name.clone(), error)),
            }
        }
        (Self { renderer, tools }, missing)
    }

    /// The tools that were found.
    pub fn tools(&self) -> impl Iterator<Item = &ToolIdentity> {
        self.tools.values()
    }
}

impl Runner for RenderRunner {
    fn tool_version(&self, tool: &str) -> Option<String> {
        self.tools.get(tool).map(|identity| identity.version.clone())
    }

    fn start(&self, request: RenderRequest) -> Run {
        let control = RenderControl::new();
        let (progress_sender, progress) = watch::channel(RenderProgress::default());
        let steer = Arc::new(control.clone());
        let renderer = self.renderer.clone();
        let outcome =
            Box::pin(async move { renderer.render(&request, &control, &progress_sender).await });
        Run { steer, progress, outcome }
    }

    fn end_leftovers(&self, scratch_root: &Path) -> io::Result<Vec<i32>> {
        Ok(leftovers::end_all(scratch_root)?.pids)
    }
}

impl Steer for RenderControl {
    fn freeze(&self) {
        Self::freeze(self);
    }

    fn thaw(&self) {
        Self::thaw(self);
    }

    fn kill(&self) {
        Self::kill(self);
    }
}
