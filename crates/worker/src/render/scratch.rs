//! The folder of one attempt: made, and the inputs linked into it under names of our own.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use palisade_core::{InputName, recipe::Recipe};

use super::RenderError;

/// Folder of links to inputs.
pub(super) const INPUTS: &str = "in";
/// Folder of outputs.
pub(super) const OUTPUTS: &str = "out";
/// Folder for what is needed between steps.
pub(super) const BETWEEN: &str = "tmp";

/// A scratch folder that is ready.
#[derive(Debug)]
pub(super) struct Scratch {
    /// Where the outputs come to be.
    pub(super) outputs: PathBuf,
    /// Sizes of the inputs, in bytes.
    pub(super) input_bytes: BTreeMap<InputName, u64>,
}

impl Scratch {
    /// Makes the folder and links the inputs. Blocking file work goes to the pool for it.
    pub(super) async fn prepare(
        folder: &Path,
        recipe: &Recipe,
        inputs: &BTreeMap<InputName, PathBuf>,
    ) -> Result<Self, RenderError> {
        let folder = folder.to_owned();
        let wanted: Vec<(InputName, Option<PathBuf>)> = recipe
            .inputs
            .iter()
            .map(|input| (input.name.clone(), inputs.get(&input.name).cloned()))
            .collect();
        let prepared = tokio::task::spawn_blocking(move || prepare(&folder, wanted)).await;
        prepared.map_err(|_stopped| RenderError::Killed)?
    }
}

fn prepare(
    folder: &Path,
    wanted: Vec<(InputName, Option<PathBuf>)>,
) -> Result<Scratch, RenderError> {
    let failed = |error: io::Error| RenderError::of_io("the scratch folder cannot be made", &error);
    for part in [INPUTS, OUTPUTS, BETWEEN] {
        let part = folder.join(part);
        match std::fs::remove_dir_all(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => std::fs::create_dir_all(&part).map_err(failed)?,
        }
    }
    let mut input_bytes = BTreeMap::new();
    for (name, path) in wanted {
        let path = path.ok_or_else(|| {
            let message = format!("the input {name} was not given");
            RenderError::definite("bad_input", message)
        })?;
        let unreadable = |error: io::Error| {
            RenderError::of_io(&format!("the input {name} is not there"), &error)
        };
        let path = path.canonicalize().map_err(unreadable)?;
        let metadata = path.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            let message = format!("{name}: it is not a file");
            return Err(RenderError::definite("bad_input", message));
        }
        if metadata.len() == 0 {
            let message = format!("{name}: the file is empty");
            return Err(RenderError::definite("bad_input", message));
        }
        let link = folder.join(INPUTS).join(name.as_str());
        std::os::unix::fs::symlink(&path, link).map_err(failed)?;
        input_bytes.insert(name, metadata.len());
    }
    Ok(Scratch { outputs: folder.join(OUTPUTS), input_bytes })
}
