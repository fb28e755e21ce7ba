//! Which crate may use which, and what each must not know. Read from `cargo metadata`.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

/// What each crate may use of the house, below the line that the architecture draws.
const ALLOWED: [(&str, &[&str]); 9] = [
    ("core", &[]),
    ("audit", &["core"]),
    ("store", &["core"]),
    ("artefacts", &["core"]),
    ("api", &["core"]),
    ("server", &["core", "audit", "store", "artefacts", "api"]),
    ("worker", &["core", "artefacts", "api"]),
    ("lab", &["core", "audit", "store", "artefacts", "api", "server", "worker"]),
    ("cli", &["core", "audit", "store", "artefacts", "api", "server", "worker", "lab"]),
];

/// Outside crates that a crate must not know, with the reason.
const FORBIDDEN: [(&str, &[&str], &str); 7] = [
    (
        "core",
        &[
            "tokio",
            "rand",
            "getrandom",
            "chrono",
            "time",
            "rusqlite",
            "reqwest",
            "axum",
            "rustix",
            "async-trait",
        ],
        "the rules are pure: no IO, clock or randomness",
    ),
    (
        "audit",
        &["tokio", "rusqlite", "reqwest", "axum", "getrandom", "rustix"],
        "an audit is a pure function of a history",
    ),
    ("store", &["axum", "reqwest", "getrandom"], "stores know no HTTP, and are handed randomness"),
    ("artefacts", &["rusqlite", "axum", "tokio-postgres"], "artefacts know no SQL"),
    ("api", &["rusqlite", "axum", "palisade-store"], "the API knows no store"),
    ("server", &["rusqlite", "palisade-worker"], "the server knows no SQL and no ffmpeg"),
    ("worker", &["rusqlite", "axum", "palisade-store"], "workers know no store"),
];

fn metadata() -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "the test asks cargo")]
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("packages are a list");
    packages
        .iter()
        .map(|package| {
            let name = package["name"].as_str().expect("a package has a name").to_owned();
            let dependencies = package["dependencies"].as_array().expect("a list");
            let used = dependencies
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| dependency["name"].as_str().expect("a name").to_owned());
            (name, used.collect())
        })
        .collect()
}

#[test]
fn arrows_between_crates_point_down_only() {
    let used = metadata();
    assert_eq!(used.len(), ALLOWED.len(), "a crate is missing from the table: {:?}", used.keys());
    for (name, allowed) in ALLOWED {
        for dependency in &used[&format!("palisade-{name}")] {
            let Some(inner) = dependency.strip_prefix("palisade-") else { continue };
            assert!(allowed.contains(&inner), "{name} must not use {inner}");
        }
    }
}

#[test]
fn crates_know_nothing_of_what_they_must_not() {
    let used = metadata();
    for (name, forbidden, reason) in FORBIDDEN {
        for dependency in &used[&format!("palisade-{name}")] {
            let known = forbidden.contains(&dependency.as_str());
            assert!(!known, "{name} must not use {dependency}: {reason}");
        }
    }
}
