//! What `submit` and `export` are given: recipe, inputs, parameters.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use palisade_api::{
    Client, ClientError,
    client::Upload,
    wire::{InputWire, SubmitRequest},
};
use palisade_core::clock::Entropy;
use palisade_worker::entropy::OsEntropy;
use serde_json::Value;

use crate::exit::Usage;

/// Flags of a wish.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WishArgs {
    /// The recipe; `palisade recipes` shows them.
    #[arg(long, value_name = "NAME")]
    pub(crate) recipe: String,
    /// A parameter of the recipe; may be given several times.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) params: Vec<(String, String)>,
    /// Render again, even if it was rendered already.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Higher goes first, -100 to 100.
    #[arg(long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) priority: Option<i16>,
    /// Publish the outputs under this name, as one; a newer submission's stay. The server shows
    /// them at /v1/objects/KEY/OUTPUT.
    #[arg(long, value_name = "KEY")]
    pub(crate) publish: Option<palisade_core::ObjectKey>,
    /// Asked again with the same id, the first answer is given again. Random if not given.
    #[arg(long, value_name = "ID")]
    pub(crate) request_id: Option<String>,
}

/// Splits `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}

/// Splits `NAME=FILE`.
pub(crate) fn file_pair(text: &std::ffi::OsStr) -> Result<(String, PathBuf), String> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0);
    let at = at.ok_or("must be NAME=FILE")?;
    let name = std::str::from_utf8(&bytes[..at]).map_err(|_| "NAME must be text")?;
    Ok((name.to_owned(), PathBuf::from(std::ffi::OsStr::from_bytes(&bytes[at + 1..]))))
}

/// Looks at the files before anything is sent: a missing one is the caller's to mend.
pub(crate) fn check_files<'a>(
    inputs: impl IntoIterator<Item = &'a (String, PathBuf)>,
) -> anyhow::Result<()> {
    for (name, path) in inputs {
        let told = |what: &str| Usage(format!("input {name}: {} {what}", shown(path)));
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Err(told("is not a file").into()),
            Err(error) => return Err(told(&format!("cannot be read: {error}")).into()),
        }
    }
    Ok(())
}

/// Uploads the files and makes the wish.
pub(crate) async fn wish(
    client: &Client,
    args: &WishArgs,
    files: &[(String, PathBuf)],
) -> anyhow::Result<SubmitRequest> {
    check_files(files)?;
    let mut inputs = BTreeMap::new();
    for (name, path) in files {
        let upload = async || client.upload(path, &Upload::Input).await;
        let (digest, size_bytes) = patiently(upload, may_pass).await.map_err(blame)?;
        let file_name = path.file_name().map(|name| told_name(&name.to_string_lossy()));
        let input = InputWire { digest: digest.to_string(), size_bytes, name: file_name };
        if inputs.insert(name.clone(), input).is_some() {
            return Err(Usage(format!("input {name}: given twice, must be given once")).into());
        }
    }
    let mut parameters = BTreeMap::new();
    for (name, value) in &args.params {
        if parameters.insert(name.clone(), Value::String(value.clone())).is_some() {
            return Err(Usage(format!("param {name}: given twice, must be given once")).into());
        }
    }
    Ok(SubmitRequest {
        recipe: args.recipe.clone(),
        inputs,
        parameters,
        request_id: Some(args.request_id.clone().unwrap_or_else(random_id)),
        fresh: args.fresh,
        priority: args.priority,
        publish: args.publish.as_ref().map(ToString::to_string),
        ..SubmitRequest::default()
    })
}

/// A file's name as it is told to people: control characters would garble their screens.
fn told_name(name: &str) -> String {
    const CHARS_MAX: usize = 255;
    let shown = |ch: char| if ch.is_control() { char::REPLACEMENT_CHARACTER } else { ch };
    name.chars().map(shown).take(CHARS_MAX).collect()
}

fn blame(error: ClientError) -> anyhow::Error {
    match error {
        ClientError::File { ref path, ref source } => {
            Usage(format!("input: {path:?} cannot be read: {source}")).into()
        }
        other => other.into(),
    }
}

/// A random request id.
pub(crate) fn random_id() -> String {
    format!("{:032x}", OsEntropy.next_u128())
}

/// A path in a message: quoted, its line feeds escaped.
pub(crate) fn shown(path: &Path) -> String {
    format!("{:?}", path.to_string_lossy())
}

/// Submits, and asks again with the same id when the answer was lost.
pub(crate) async fn submit(
    client: &Client,
    wish: &SubmitRequest,
) -> Result<palisade_api::wire::SubmitResponse, ClientError> {
    patiently(async || client.submit(wish).await, ClientError::is_unconfirmed).await
}

/// Whether a server is there that cannot serve now: its database restarts, say. One that is not
/// there at all is told of at once.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Unknown { .. } | ClientError::Foreign { status: 500.., .. } => true,
        ClientError::Refused(problem) => problem.status >= 500 || problem.status == 429,
        _ => false,
    }
}

/// Asks again, some twelve seconds in all, as long as its error says that it may yet be answered.
async fn patiently<A>(
    ask: impl AsyncFn() -> Result<A, ClientError>,
    may_pass: impl Fn(&ClientError) -> bool,
) -> Result<A, ClientError> {
    const TRIES: u32 = 6;
    let mut tried = 0;
    loop {
        tried += 1;
        match ask().await {
            Err(error) if may_pass(&error) && tried < TRIES => {
                let pause = std::time::Duration::from_millis(200 << tried);
                tokio::time::sleep(pause).await;
            }
            answer => return answer,
        }
    }
}
