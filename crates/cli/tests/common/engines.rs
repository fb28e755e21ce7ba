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
        psql(&self.store, &format!("CREATE DATABASE {name}"));
        let store = self.store.replacen("/palisade?", &format!("/{name}?"), 1);
        let artefacts = self.artefacts.replacen("/own?", &format!("/{name}?"), 1);
        ["--store", &store, "--artefacts", &artefacts].map(str::to_owned).into()
    }
}

/// Has a database do something.
pub fn psql(store: &str, sql: &str) {
    #[expect(clippy::disallowed_methods, reason = "the tests' own tool")]
    let done = Command::new("psql").args([store, "-v", "ON_ERROR_STOP=1", "-qc", sql]).output();
    let done = done.expect("psql starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Flags for a server of a suite that runs on both kinds of engines.
pub fn flags() -> Vec<String> {
    Shared::of_environment().map(|shared| shared.flags()).unwrap_or_default()
}
