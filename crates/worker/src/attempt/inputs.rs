//! Inputs: fetched under names of our own, and verified while they are read.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use palisade_core::{InputName, digest::Hasher};
use tokio::io::AsyncWriteExt as _;

use super::{Attempt, Stop, failure, io_failure};
use crate::{
    assignment::Input,
    control_plane::{CallError, Chunks},
    data_dir::AttemptFolders,
    timer::within_ms,
};

/// How long a download may say nothing before it is begun anew, in ms.
const SILENCE_MS: u64 = 60_000;

impl Attempt {
    pub(super) async fn fetch_inputs(
        &self,
        folders: &AttemptFolders,
    ) -> Result<BTreeMap<InputName, PathBuf>, Stop> {
        let mut paths = BTreeMap::new();
        for (index, (name, input)) in self.assignment.inputs.iter().enumerate() {
            let path = folders.inputs.join(format!("input-{index}"));
            self.fetch(name, *input, &path).await?;
            paths.insert(name.clone(), path);
        }
        Ok(paths)
    }

    async fn fetch(&self, name: &InputName, input: Input, path: &Path) -> Result<(), Stop> {
        let plane = &self.around.plane;
        // What the disk or the bytes themselves say is an answer too: it ends the tries.
        let fetched = self.effect("read", || {
            Box::pin(async {
                let mut chunks = self.in_time(plane.blob(input.digest)).await?;
                self.write(name, input, path, &mut *chunks).await
            })
        });
        fetched.await?
    }

    /// Writes what arrives, and looks whether it is what was asked for.
    async fn write(
        &self,
        name: &InputName,
        input: Input,
        path: &Path,
        chunks: &mut dyn Chunks,
    ) -> Result<Result<(), Stop>, CallError> {
        let unwritable = |error: std::io::Error| {
            Ok(Err(io_failure(&format!("the input {name} cannot be written"), &error)))
        };
        let mut file = match tokio::fs::File::create(path).await {
            Ok(file) => file,
            Err(error) => return unwritable(error),
        };
        let mut hasher = Hasher::new();
        let mut size_bytes = 0;
        while let Some(chunk) = self.in_time(chunks.next()).await? {
            hasher.update(&chunk);
            size_bytes += chunk.len() as u64;
            if size_bytes > input.size_bytes {
                break;
            }
            if let Err(error) = file.write_all(&chunk).await {
                return unwritable(error);
            }
        }
        if let Err(error) = file.flush().await {
            return unwritable(error);
        }
        if size_bytes == input.size_bytes && hasher.finish() == input.digest {
            return Ok(Ok(()));
        }
        let message = format!(
            "the input {name} is not what was submitted: {} of {} bytes were asked for, {} of \
             {size_bytes} came",
            input.digest,
            input.size_bytes,
            hasher.finish(),
        );
        Ok(Err(failure("input_changed", message)))
    }

    async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let timer = &*self.around.desk.timer;
        within_ms(timer, SILENCE_MS, call).await.unwrap_or_else(|| {
            let message = format!("a download said nothing for {SILENCE_MS} ms");
            Err(CallError::Unconfirmed { message })
        })
    }
}
