//! Cells as objects in a bucket, over any [`ObjectStore`] with conditional writes.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{
    Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion, path::Path,
};

use super::{
    Cell, CellError, CompareAndSwap, Key, Swap, Version, cells::CELL_BYTES_MAX, key::PROBE_PREFIX,
};
use crate::bucket::Trouble;

/// Cells in a bucket. The prefix is the registers' own: nothing else writes or collects there.
#[derive(Debug, Clone)]
pub struct BucketCells {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl BucketCells {
    /// Cells below `prefix` of `store`. What the store says of itself is not to be trusted: probe
    /// it first ([`super::probe::probe`]).
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { store, prefix }
    }

    /// Removes what the probe with this nonce has left, and nothing else: another server may be
    /// probing now.
    pub async fn sweep_probe(&self, nonce: u128) -> Result<(), CellError> {
        let of_nonce = format!("{nonce:032x}");
        let probe = self.prefix.clone().join(PROBE_PREFIX).join(of_nonce);
        let found = self.store.list(Some(&probe)).map_ok(|meta| meta.location);
        let gone = self.store.delete_stream(Box::pin(found));
        gone.try_for_each(|_| std::future::ready(Ok(())))
            .await
            .map_err(|error| CellError::new(self.name(), "sweep the probe", Trouble::from(error)))
    }

    fn path(&self, key: &Key) -> Path {
        self.prefix.parts().chain(Path::from(key.as_str()).parts()).collect()
    }
}

#[async_trait]
impl CompareAndSwap for BucketCells {
    fn name(&self) -> String {
        format!("{}/{}", self.store, self.prefix)
    }

    async fn read(&self, key: &Key) -> Result<Option<Cell>, CellError> {
        let failed = |error| CellError::new(self.name(), "read", Trouble::from(error));
        let got = match self.store.get(&self.path(key)).await {
            Ok(got) => got,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let version = Version { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
        if got.meta.size > CELL_BYTES_MAX as u64 {
            let found = format!("{} bytes, a cell has at most {CELL_BYTES_MAX}", got.meta.size);
            return Err(CellError::new(self.name(), "take for a cell", found));
        }
        if version.e_tag.is_none() && version.version.is_none() {
            return Err(CellError::new(self.name(), "tell the version", "it sent none"));
        }
        Ok(Some(Cell { bytes: got.bytes().await.map_err(failed)?, version }))
    }

    async fn swap(&self, key: &Key, expected: Option<&Version>, bytes: Bytes) -> Swap {
        let mode = match expected {
            None => PutMode::Create,
            Some(Version { e_tag, version }) => {
                PutMode::Update(UpdateVersion { e_tag: e_tag.clone(), version: version.clone() })
            }
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(&self.path(key), bytes.into(), options).await;
        let Err(error) = put else { return Swap::Swapped };
        let expects_one = expected.is_some();
        let failed = |error| CellError::new(self.name(), "swap", Trouble::from(error));
        match error {
            Error::AlreadyExists { .. }
            | Error::Precondition { .. }
            | Error::NotModified { .. } => Swap::Conflict,
            Error::NotFound { .. } if expects_one => Swap::Conflict,
            // Decided before anything was sent.
            Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::InvalidPath { .. } => Swap::NotDone(failed(error)),
            // All else may have been preceded by a sending that landed: the client repeats what a
            // server answered with 5xx, and then shows only the last answer.
            error => Swap::Unknown(failed(error)),
        }
    }
}

#[cfg(test)]
mod tests;
