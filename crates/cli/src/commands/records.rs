//! Where a server's records are, and whether its artefacts are theirs.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use palisade_artefacts::{Mark, Opened};
use palisade_core::clock::Entropy as _;
use palisade_store::{
    Failure, Store,
    artefacts::Moved,
    postgres::{Address, PostgresOptions, PostgresStore},
    sqlite::SqliteStore,
};
use palisade_worker::entropy::OsEntropy;

use crate::{edge::SystemClock, exit::Usage};

/// An open store, of either kind.
pub(super) enum Records {
    /// In the data directory.
    Own(Arc<SqliteStore>),
    /// In a database that many servers share.
    Shared(Arc<PostgresStore>),
}

impl Records {
    /// Opens the store. That migrates it and reads what is leased: it may take a moment.
    pub(super) async fn open(url: Option<&str>, data: PathBuf) -> anyhow::Result<Self> {
        let clock = Arc::new(SystemClock::new());
        if let Some(url) = url {
            let options = PostgresOptions::new(Address::parse(url)?, clock);
            return Ok(Self::Shared(Arc::new(PostgresStore::open(options).await?)));
        }
        // It blocks.
        let store = tokio::task::spawn_blocking(move || SqliteStore::open(&data, clock));
        Ok(Self::Own(Arc::new(store.await.context("opening the store panicked")??)))
    }

    /// The store as everything else knows it.
    pub(super) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Own(store) => Arc::<SqliteStore>::clone(store),
            Self::Shared(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// Makes sure that these artefacts are the store's, before anything is served: a server with
    /// others would find none of its neighbours' blobs, and two stores with the same would each
    /// collect what the other keeps.
    pub(super) async fn bind(&self, opened: &Opened, moved: Moved) -> anyhow::Result<()> {
        let unread = "the store could not say which artefacts are its own";
        let store = self.id().await.context(unread)?;
        let ours = Mark { place: format!("{:032x}", OsEntropy.next_u128()), store };
        let Some(mark) = opened.mark(&ours).await? else { return Ok(()) };
        let name = &opened.name;
        if mark.store != ours.store {
            let told = format!(
                "artefacts: {name} belongs to another store; must be a bucket, a prefix or a \
                 folder of this store's own"
            );
            return Err(Usage(told).into());
        }
        let bound = self.bound(&mark.place, moved).await.context(unread)?;
        if bound != mark.place {
            let told = format!(
                "artefacts: {name} is not where this store's artefacts are; must be the place that \
                 its other servers are given, and that it was served with before (where all of \
                 them were moved, start one server with --artefacts-moved)"
            );
            return Err(Usage(told).into());
        }
        Ok(())
    }

    async fn id(&self) -> Result<String, Failure> {
        match self {
            Self::Own(store) => store.id(),
            Self::Shared(store) => store.id().await,
        }
    }

    async fn bound(&self, place: &str, moved: Moved) -> Result<String, Failure> {
        match self {
            Self::Own(store) => store.bind_artefacts(place, moved),
            Self::Shared(store) => store.bind_artefacts(place, moved).await,
        }
    }
}
