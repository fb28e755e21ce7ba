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

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use palisade_core::{
    InputName, OutputName, ParameterName,
    manifest::{Check, Provenance},
    recipe::Recipe,
};

pub use control::RenderControl;
pub use error::RenderError;

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
