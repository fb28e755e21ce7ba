//! Outputs brought to where blobs live without the server in between: the server draws the place
//! and records that the bytes are there, the worker writes them.

use std::{path::Path, sync::Arc};

use palisade_api::{Client, Problem, client::Upload, wire::FinishRequest};
use palisade_artefacts::{BlobErrorKind, Blobs, Place, write};
use palisade_core::{Digest, Number, with_causes};

use super::CallError;

/// How often an upload begins again because its place was condemned meanwhile.
const TRIES: u32 = 3;

/// Brings a file, unless its bytes are there already. Answers its digest and size.
///
/// The file is read twice, as it is on the way through the server: once to name it, once to write
/// it, compared on the way.
pub(super) async fn upload(
    client: &Client,
    blobs: &Arc<dyn Blobs>,
    path: &Path,
    purpose: &Upload,
) -> Result<(Digest, u64), CallError> {
    let (digest, size_bytes) = Client::hash(path).await?;
    let mut tries = TRIES;
    loop {
        let pin = client.pin(digest, purpose).await?;
        if pin.present {
            return Ok((digest, size_bytes));
        }
        let Some(generation) = pin.generation else {
            // A server of before, or one that keeps its place to itself: it takes the bytes.
            return Ok(client.upload(path, purpose).await?);
        };
        let written = FinishRequest { generation, size_bytes };
        bring(blobs, path, digest, &written).await?;
        match client.finish_blob(digest, &written).await {
            Ok(_) => return Ok((digest, size_bytes)),
            // Its place was condemned while it was on its way: it gets another one.
            Err(error) if tries > 0 && error.code() == Some("stale_generation") => tries -= 1,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn bring(
    blobs: &Arc<dyn Blobs>,
    path: &Path,
    digest: Digest,
    written: &FinishRequest,
) -> Result<(), CallError> {
    let unreadable =
        |message: String| CallError::File { path: path.display().to_string(), message };
    let generation = Number::new(written.generation)
        .map_err(|error| CallError::Unconfirmed { message: error.to_string() })?;
    let place = Place::new(digest, generation);
    let file = tokio::fs::File::open(path).await.map_err(|error| unreadable(error.to_string()))?;
    match write(blobs.as_ref(), place, written.size_bytes, file).await {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            BlobErrorKind::Interrupted | BlobErrorKind::Invalid => unreadable(with_causes(&error)),
            BlobErrorKind::DiskFull => {
                CallError::Refused(Problem::new(507, "disk_full", with_causes(&error)))
            }
            BlobErrorKind::Corrupt => {
                CallError::Refused(Problem::new(500, "corrupt", with_causes(&error)))
            }
            BlobErrorKind::NotFound | BlobErrorKind::Io => {
                CallError::Unconfirmed { message: with_causes(&error) }
            }
        }),
    }
}
