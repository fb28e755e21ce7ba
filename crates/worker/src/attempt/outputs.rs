//! Outputs: uploaded as blobs under the attempt's pair, and listed in a manifest.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use palisade_core::manifest::{Manifest, Output};

use super::{Attempt, Stop, failure, io_failure};
use crate::{
    control_plane::CallError,
    render::{Rendered, RenderedOutput},
    timer::within_ms,
};

/// Files of one attempt that are sent at a time: a folder of a thousand small ones should not
/// wait for a thousand round trips.
const UPLOADS_AT_A_TIME: usize = 4;
/// And that are made ready for it.
const UPLOADS_PREPARED: usize = 64;
/// What an upload may take whatever its size, in ms.
const UPLOAD_MS: u64 = 120_000;
/// And the slowest line that is put up with, in bytes per ms.
const UPLOAD_BYTES_PER_MS_MIN: u64 = 64;

impl Attempt {
    /// Uploads all outputs that are not there yet.
    pub(super) async fn upload(&self, rendered: &Rendered) -> Result<Manifest, Stop> {
        let mut outputs = Vec::with_capacity(rendered.outputs.len());
        for some in rendered.outputs.chunks(UPLOADS_PREPARED) {
            let uploads: Vec<_> = some.iter().map(|output| self.upload_one(output)).collect();
            let uploads = stream::iter(uploads).buffered(UPLOADS_AT_A_TIME);
            outputs.extend(uploads.try_collect::<Vec<_>>().await?);
        }
        let (checks, provenance) = (rendered.checks.clone(), rendered.provenance.clone());
        Ok(Manifest { outputs, checks, provenance })
    }

    async fn upload_one(&self, output: &RenderedOutput) -> Result<Output, Stop> {
        let name = &output.name;
        let metadata = tokio::fs::symlink_metadata(&output.path).await;
        let metadata = metadata
            .map_err(|error| io_failure(&format!("the output {name} cannot be read"), &error))?;
        if !metadata.is_file() {
            // A link would upload what it points at, which is not the render's to give.
            return Err(failure("bad_output", format!("the output {name} is not a file")));
        }
        let around = &self.around;
        let (job, pair) = (self.assignment.job, self.assignment.pair);
        let limit_ms = UPLOAD_MS + metadata.len() / UPLOAD_BYTES_PER_MS_MIN;
        let uploaded = self.effect("upload", || {
            Box::pin(async {
                let call = around.plane.upload(&output.path, job, pair);
                within_ms(&*around.desk.timer, limit_ms, call).await.unwrap_or_else(|| {
                    let message = format!("the upload of {name} took longer than {limit_ms} ms");
                    Err(CallError::Unconfirmed { message })
                })
            })
        });
        let (digest, size_bytes) = uploaded.await?;
        Ok(Output {
            name: name.clone(),
            digest,
            size_bytes,
            media_type: output.media_type.clone(),
            facts: output.facts.clone(),
        })
    }
}
