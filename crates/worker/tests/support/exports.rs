//! Exports of clips through the renderer, as the claim loop runs them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use palisade_core::recipe::Recipe;
use palisade_worker::{
    clock::BoottimeClock,
    recipes,
    render::{RenderControl, RenderError, RenderProgress, RenderRequest, Rendered, Renderer},
};
use serde_json::Value;
use tokio::sync::watch;

use super::{clips::clip, nanny};

/// A renderer whose children run under the nanny of the tests.
pub(crate) fn renderer() -> Renderer {
    Renderer::new(nanny(), Arc::new(BoottimeClock))
}

/// A built-in recipe.
pub(crate) fn built_in(name: &str) -> Recipe {
    recipes::built_in().get(&name.parse().expect("a name")).expect("built in").clone()
}

/// A request for a recipe with some parameters, on a file.
pub(crate) fn request(
    recipe: Recipe,
    parameters: &[(&str, &str)],
    source: &Path,
    scratch: &Path,
) -> RenderRequest {
    let given: BTreeMap<String, Value> =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    RenderRequest {
        parameters: recipe.resolve_parameters(&given).expect("allowed"),
        recipe: Arc::new(recipe),
        inputs: BTreeMap::from([("source".parse().expect("a name"), source.to_owned())]),
        scratch: scratch.to_owned(),
    }
}

/// What came of an export, with all progress that was told meanwhile.
pub(crate) struct Export {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) outcome: Result<Rendered, RenderError>,
    pub(crate) progress: Vec<RenderProgress>,
}

impl Export {
    /// The only output, or one of them.
    pub(crate) fn output(&self, name: &str) -> PathBuf {
        let rendered = self.outcome.as_ref().expect("it came to something");
        let output = rendered.outputs.iter().find(|output| output.name.as_str() == name);
        output.expect("it is among the outputs").path.clone()
    }

    /// Why it failed, and whether another try could help.
    pub(crate) fn failure(&self) -> &palisade_core::job::Failure {
        match &self.outcome {
            Err(RenderError::Failed(failure)) => failure,
            other => panic!("should have failed: {other:?}"),
        }
    }
}

/// Runs a request to its end, and keeps what progress was told.
pub(crate) async fn run(folder: tempfile::TempDir, request: RenderRequest) -> Export {
    let (sender, mut receiver) = watch::channel(RenderProgress::default());
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let listening = tokio::spawn(async move {
        while receiver.changed().await.is_ok() {
            kept.lock().expect("not poisoned").push(*receiver.borrow());
        }
    });
    let outcome = renderer().render(&request, &RenderControl::new(), &sender).await;
    drop(sender);
    listening.await.expect("it only listens");
    let progress = told.lock().expect("not poisoned").clone();
    Export { folder, outcome, progress }
}

/// Exports the clip of that name.
pub(crate) async fn export(name: &str, recipe: &str, parameters: &[(&str, &str)]) -> Export {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = folder.path().join("sources");
    std::fs::create_dir(&sources).expect("made");
    let source = clip(&sources, name);
    let scratch = folder.path().join("scratch");
    let request = request(built_in(recipe), parameters, &source, &scratch);
    run(folder, request).await
}
