//! One render: inputs looked at, steps run under limits, outputs verified. The claim loop calls
//! it; what it answers is what to commit or what to report.
//!
//! It writes in its scratch folder alone, and never to an input. A customer's file name never
//! reaches a command line: inputs are linked into the scratch under their recipe's names.
//!
//! Layout of the scratch folder, which must be private to the attempt and may be removed
//! afterwards: `in/` (links to the inputs), `out/` (outputs), `tmp/` (between steps), `children/`
//! (notes of what runs, for [`crate::process::leftovers`]).
//!
//! Must not know: leases, servers, uploads.

mod control;
mod error;
mod inputs;
mod outputs;
mod run;
mod scratch;
mod steps;
mod stopwatch;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use palisade_core::{
    InputName, OutputName, ParameterName,
    clock::Clock,
    manifest::{Check, Provenance},
    recipe::Recipe,
};
use tokio::sync::watch;

pub use control::RenderControl;
pub use error::RenderError;

use crate::{
    media::ToolIdentity,
    process::{NannyCommand, Supervisor},
};
use run::Runner;
use scratch::Scratch;
use stopwatch::Stopwatch;

/// Runs renders. Cheap to clone; any number may run at once, each with a scratch of its own.
#[derive(Debug, Clone)]
pub struct Renderer {
    supervisor: Supervisor,
    clock: Arc<dyn Clock>,
}

impl Renderer {
    /// A renderer whose children run under that nanny. The clock measures time and stall limits.
    pub fn new(nanny: NannyCommand, clock: Arc<dyn Clock>) -> Self {
        Self { supervisor: Supervisor::new(nanny), clock }
    }

    /// Renders. Returns when nothing runs any more, whatever came of it; dropped before, it kills
    /// what runs. Progress goes to `progress` as it is known; nobody need listen.
    ///
    /// The scratch folder is left as it is: the outputs are in it.
    pub async fn render(
        &self,
        request: &RenderRequest,
        control: &RenderControl,
        progress: &watch::Sender<RenderProgress>,
    ) -> Result<Rendered, RenderError> {
        let recipe = &*request.recipe;
        let scratch = Scratch::prepare(&request.scratch, recipe, &request.inputs).await?;
        let limits = Stopwatch::new(recipe.time_limit_s, recipe.stall_limit_s, self.clock.now());
        let mut runner = self.runner(&request.scratch, control, limits);
        let tool = runner.identify(&recipe.tool.name).await?;
        if !recipe.tool.accepts(&tool.version) {
            let pinned = recipe.tool.version.as_deref().unwrap_or_default();
            let message = format!(
                "the recipe wants {} {pinned}, and this worker has {}",
                recipe.tool.name, tool.version
            );
            return Err(RenderError::retryable("tool_mismatch", message));
        }
        let inputs = inputs::look_into(&mut runner, recipe, &scratch).await?;
        let values = inputs::values(recipe, &request.parameters, &inputs)?;
        let total_us = outputs::expected_us(recipe, &values, &inputs.promising);
        let commands = steps::run(&mut runner, recipe, &values, total_us, progress).await?;
        let (outputs, checks) =
            outputs::collect(&mut runner, recipe, &values, &inputs.measured, &scratch).await?;
        if control.wish() == control::Wish::Kill {
            return Err(RenderError::Killed);
        }
        progress.send_modify(|progress| {
            progress.percent = progress.percent.map(|_| 100.0);
        });
        let provenance = Provenance { toolchain: tool.to_string(), commands };
        Ok(Rendered { outputs, checks, provenance })
    }

    /// Which build of a tool is here: what a worker says of itself at start. `scratch` is any
    /// folder of the worker's own.
    pub async fn identify(
        &self,
        tool: &str,
        scratch: &std::path::Path,
    ) -> Result<ToolIdentity, RenderError> {
        let limits = Stopwatch::new(IDENTIFY_LIMIT_S, IDENTIFY_LIMIT_S, self.clock.now());
        self.runner(scratch, &RenderControl::new(), limits).identify(tool).await
    }

    fn runner(
        &self,
        scratch: &std::path::Path,
        control: &RenderControl,
        stopwatch: Stopwatch,
    ) -> Runner {
        Runner {
            supervisor: self.supervisor.clone(),
            clock: Arc::clone(&self.clock),
            control: control.clone(),
            folder: scratch.to_owned(),
            stopwatch,
        }
    }
}

/// How long a tool may take to say its version, in seconds.
const IDENTIFY_LIMIT_S: u64 = 60;

/// What is to be rendered.
#[derive(Debug, Clone)]
pub struct RenderRequest {
    /// The recipe, valid.
    pub recipe: Arc<Recipe>,
    /// Its parameters, all of them, in canonical text.
    pub parameters: BTreeMap<ParameterName, String>,
    /// Where the inputs are, all that the recipe declares. Files under any name; they are read
    /// only, and must stay as they are until the render is over.
    pub inputs: BTreeMap<InputName, PathBuf>,
    /// A folder of this attempt's own. It is made if it is not there; what is in it is replaced.
    pub scratch: PathBuf,
}

/// What came of it. Nothing is durable yet, and nothing is hashed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The outputs, in the order of their names. At least one.
    pub outputs: Vec<RenderedOutput>,
    /// What was verified and found; for the manifest.
    pub checks: Vec<Check>,
    /// The tool's exact build, and the command lines that ran; for the manifest.
    pub provenance: Provenance,
}

/// One output file.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedOutput {
    /// Its name in the manifest.
    pub name: OutputName,
    /// Where it is, in the scratch folder.
    pub path: PathBuf,
    /// Its media type.
    pub media_type: String,
    /// Its length.
    pub size_bytes: u64,
    /// What was measured of it: `duration_s`, `width`, `height`, `video_codec`, `audio_codec`,
    /// `pixel_format`; where it is a media file.
    pub facts: BTreeMap<String, serde_json::Value>,
}

/// How far a render is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RenderProgress {
    /// Percent of the whole render, 0 to 100, never falling. Absent where it cannot be known
    /// (an input that does not say how long it is), rather than made up.
    pub percent: Option<f64>,
    /// How many times faster than the clip's own pace it goes, as the tool says.
    pub speed: Option<f64>,
    /// How much of the output's time has been written, in ms.
    pub done_ms: Option<u64>,
}
