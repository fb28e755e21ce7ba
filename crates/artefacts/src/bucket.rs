//! A bucket (or container) and a prefix in it, with what its client can do.

mod open;
#[cfg(test)]
mod tests;
mod trouble;
mod uploads;

use std::{fmt, sync::Arc};

use object_store::{ObjectStore, ObjectStoreExt as _, path::Path, signer::Signer};
use palisade_core::with_causes;

pub use self::open::{BucketError, Scheme, open};
pub use self::trouble::{Trouble, TroubleKind};
pub(crate) use self::uploads::Uploads;
use crate::register::{BucketCells, probe};

/// A prefix of a bucket. Cheap to clone.
#[derive(Clone)]
pub struct Bucket {
    /// Names it for people: `s3://bucket/prefix`. Holds no secret.
    pub name: String,
    /// The client.
    pub store: Arc<dyn ObjectStore>,
    /// All that Palisade keeps there is below it.
    pub prefix: Path,
    /// Whether it writes on conditions: creating only, replacing only a version. What a store says
    /// of itself is tried out by [`Bucket::prove`].
    pub is_conditional: bool,
    /// Signs addresses, where the store knows such.
    pub(crate) signer: Option<AddressSigner>,
    /// Finds unfinished uploads, where the store has to be asked for them.
    pub(crate) uploads: Option<Arc<Uploads>>,
}

/// Signs addresses under which an object can be read.
#[derive(Debug, Clone)]
pub(crate) struct AddressSigner {
    pub(crate) signer: Arc<dyn Signer>,
    /// Whether the address may say how the object is to be shown.
    pub(crate) takes_overrides: bool,
}

/// A bucket that must not be used, or could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// Its conditional writes are not what a register rests on, or it has none.
    #[error(
        "conditional writes: {}; where a store has none, say so with ?conditional=off",
        with_causes(_0)
    )]
    Conditions(probe::ProbeError),
    /// An object could not be written, read and deleted, or not while conditions were tried.
    #[error("{store} {}: {trouble}", trouble.kind.advice())]
    Unusable {
        /// The store's name.
        store: String,
        /// What it said.
        trouble: Trouble,
    },
}

impl ProveError {
    /// Whether it may well be there later: it could not be reached.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Unusable { trouble, .. } if trouble.kind == TroubleKind::Unreachable)
    }
}

impl Bucket {
    /// A bucket over any store, for tests and stores of other makes: signs nothing, sweeps nothing.
    pub fn over(name: &str, store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        let name = name.to_owned();
        Self { name, store, prefix, is_conditional: true, signer: None, uploads: None }
    }

    /// Where registers live: a prefix of their own, which no collector touches.
    pub fn cells(&self) -> BucketCells {
        BucketCells::new(Arc::clone(&self.store), self.prefix.clone().join("registers"))
    }

    /// Tries out what the bucket really does, before anything is trusted to it. `nonce` is random.
    ///
    /// A store that declares conditional writes must do them; one that declares none must only
    /// write, read and delete.
    pub async fn prove(&self, nonce: u128) -> Result<(), ProveError> {
        // First what needs no condition: whatever fails here says nothing of conditions.
        self.try_plainly(nonce).await?;
        if !self.is_conditional {
            return Ok(());
        }
        let cells = self.cells();
        let probed = probe::probe(Arc::new(cells.clone()), nonce).await;
        // Also after a lie: the probe's own objects alone.
        if let Err(error) = cells.sweep_probe(nonce).await {
            let error = with_causes(&error);
            tracing::warn!(error, "what the probe wrote stays behind");
        }
        probed.map_err(|error| self.of_probe(error))
    }

    async fn try_plainly(&self, nonce: u128) -> Result<(), ProveError> {
        let path = self.prefix.clone().join(format!(".try-{nonce:032x}"));
        let failed = |source: object_store::Error| self.unusable(source.into());
        self.store.put(&path, "tried".into()).await.map_err(failed)?;
        let read = self.store.get(&path).await.map_err(failed)?.bytes().await.map_err(failed)?;
        self.store.delete(&path).await.map_err(failed)?;
        if read == "tried" {
            return Ok(());
        }
        let said = format!("it sent other bytes: {read:?}");
        Err(self.unusable(Trouble { kind: TroubleKind::Other, said }))
    }

    /// A probe that failed says something of conditions only where the store could be asked.
    fn of_probe(&self, error: probe::ProbeError) -> ProveError {
        let probe::ProbeError::Inconclusive { source, .. } = &error else {
            return ProveError::Conditions(error);
        };
        match source.source.downcast_ref::<Trouble>() {
            Some(trouble)
                if !matches!(trouble.kind, TroubleKind::Unsupported | TroubleKind::Other) =>
            {
                self.unusable(trouble.clone())
            }
            _ => ProveError::Conditions(error),
        }
    }

    fn unusable(&self, trouble: Trouble) -> ProveError {
        ProveError::Unusable { store: self.name.clone(), trouble }
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Clients print their settings, and those hold secrets.
        formatter.debug_tuple("Bucket").field(&self.name).finish()
    }
}
