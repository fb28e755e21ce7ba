//! Which engines the servers under test work on: SQLite and a folder, or the PostgreSQL and the S3
//! server that `scripts/with-cluster` has started.

use std::{
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// What `scripts/with-cluster` tells.
pub struct Shared {
    store: String,
    artefacts: String,
}

impl Shared {
    /// None outside `scripts/with-cluster`.
    pub fn of_environment() -> Option<Self> {
        let store = std::env::var("PALISADE_CLUSTER_STORE").ok()?;
        let artefacts = std::env::var("PALISADE_CLUSTER_ARTEFACTS").ok()?;
        Some(Self { store, artefacts })
    }

    /// Flags for servers that have an empty database and an empty prefix in common.
    pub fn flags(&self) -> Vec<String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}_{count}", std::process::id());
        let sql = format!("CREATE DATABASE {name}");
        #[expect(clippy::disallowed_methods, reason = "the tests' own tool")]
        let made = Command::new("psql").args([&self.store, "-qc", &sql]).output();
        let made = made.expect("psql starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let store = self.store.replacen("/palisade?", &format!("/{name}?"), 1);
        let artefacts = self.artefacts.replacen("/own?", &format!("/{name}?"), 1);
        ["--store", &store, "--artefacts", &artefacts].map(str::to_owned).into()
    }
}

/// Flags for a server of a suite that runs on both kinds of engines.
pub fn flags() -> Vec<String> {
    Shared::of_environment().map(|shared| shared.flags()).unwrap_or_default()
}
