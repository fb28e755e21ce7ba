//! `palisade audit`: a store that was lived in has no findings, also while it is served; a copy
//! that somebody harmed has, each naming the record.

mod common;

use std::path::{Path, PathBuf};

use common::{PROGRAM, Stage};
use palisade_api::wire::{AcquireRequest, AcquireResponse, PairWire};
use palisade_core::{
    Tenant, Timestamp,
    outbox::{Endpoint, EndpointId, EventType, Secret},
};
use rusqlite::Connection;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn audit(folder: &Path, more: &[&str]) -> (Option<i32>, Value) {
    #[expect(clippy::disallowed_methods, reason = "the test runs the binary that it tests")]
    let output = std::process::Command::new(PROGRAM)
        .args(["audit", "--json", "--data"])
        .arg(folder)
        .args(more)
        .output()
        .expect("the binary runs");
    let error = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
    (output.status.code(), report)
}

/// The rules that a harmed folder is found to break.
fn broken(folder: &Path, more: &[&str]) -> Vec<String> {
    let (code, report) = audit(folder, more);
    let findings = report["findings"].as_array().expect("a list");
    assert_eq!(code, Some(i32::from(!findings.is_empty())), "{report:#}");
    let rules = findings.iter().map(|found| found["rule"].as_str().expect("a word").to_owned());
    rules.collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file");
        }
    }
}

/// A change that the store itself would refuse.
fn harm(folder: &Path, sql: &str) {
    let connection = Connection::open(folder.join("palisade.db")).expect("the database");
    let triggers = "SELECT group_concat('DROP TRIGGER ' || name, ';') FROM sqlite_schema \
                    WHERE type = 'trigger'";
    let drop: String = connection.query_row(triggers, [], |row| row.get(0)).expect("triggers");
    connection.execute_batch(&drop).expect("dropped");
    connection.execute_batch("PRAGMA ignore_check_constraints = 1").expect("set");
    connection.execute_batch(sql).expect("harmed");
}

/// The one blob that is an output: the only file whose name holds its digest.
fn output_file(folder: &Path, digest: &str) -> PathBuf {
    let places = folder.join("blobs/places");
    let folders = std::fs::read_dir(places).expect("places").flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).expect("one").flatten());
    let mut files = files.map(|entry| entry.path());
    files.find(|path| path.display().to_string().contains(digest)).expect("the blob's file")
}

#[tokio::test]
async fn a_store_in_order_has_no_findings_and_each_harm_is_found() {
    let mut stage = Stage::set().await;
    let clip = stage.clip("clip.mp4", 1).await;
    let job = stage.submit("slow", &clip).await.job;
    let worker = stage.worker("worker");
    let done = stage.over(&job).await;
    let view = serde_json::to_value(&done).expect("JSON");
    let digest = view["completion"]["manifest"]["outputs"][0]["digest"].as_str();
    let digest = digest.expect("an output").to_owned();
    let served = stage.cluster.server_dir();
    assert_eq!(broken(&served, &[]), [""; 0], "while it is served");
    drop(worker);
    stage.cluster.kill_server().await.expect("the server ends");
    let (_, report) = audit(&served, &[]);
    assert_eq!((&report["jobs"], &report["blobs"]), (&1.into(), &1.into()), "{report:#}");
    assert!(report["entries"].as_u64() > Some(3), "{report:#}");

    let mut serial = 0;
    let mut harmed = |harm: &dyn Fn(&Path), more: &[&str]| {
        serial += 1;
        let folder = stage.dir.path().join(format!("copy-{serial}"));
        copy(&served, &folder);
        harm(&folder);
        broken(&folder, more)
    };
    assert_eq!(harmed(&|_| {}, &[]), [""; 0], "a copy");
    let flip = |folder: &Path| {
        let file = output_file(folder, &digest);
        let mut bytes = std::fs::read(&file).expect("the blob");
        bytes[100] ^= 1;
        std::fs::remove_file(&file).expect("it may be read-only");
        std::fs::write(&file, bytes).expect("written");
    };
    assert_eq!(harmed(&flip, &[]), ["blobs"]);
    assert_eq!(harmed(&flip, &["--quick"]), [""; 0], "the length alone does not tell");
    let gone = |folder: &Path| std::fs::remove_file(output_file(folder, &digest)).expect("gone");
    assert_eq!(harmed(&gone, &["--quick"]), ["blobs"]);
    let sql = [
        ("DELETE FROM blobs", &["blobs"][..]),
        ("DELETE FROM jobs", &["readable", "journal"]),
        ("DELETE FROM attempts", &["one_completion"]),
        ("UPDATE jobs SET fence = 1", &["fence"]),
        ("UPDATE meta SET counter = 1", &["rising_tokens", "rising_tokens"]),
        ("UPDATE jobs SET completed_by = completed_by + 1", &["one_completion", "journal"]),
        (
            "INSERT INTO attempts SELECT job, token + 500, lease_id, worker, session, claim, \
             claim_seq, granted_at_ms, 1, ttl_ms, deadline_ms, renewed_at_ms, life, \
             closed_at_ms, close_reason, failure_reason, failure_message, failure_kind, \
             requeued_state, requeued_at_ms FROM attempts; UPDATE meta SET counter = 9999; \
             UPDATE jobs SET fence = 9999",
            &["one_completion"],
        ),
        (
            "UPDATE attempts SET close_reason = NULL, closed_at_ms = NULL",
            &["one_completion", "attempts_fit_state"],
        ),
    ];
    for (sql, expected) in sql {
        assert_eq!(harmed(&|folder| harm(folder, sql), &["--quick"]), expected, "{sql}");
    }
    let due = "INSERT INTO publications_due SELECT id, id FROM jobs";
    assert_eq!(harmed(&|folder| harm(folder, due), &["--quick"]), ["publications"]);
    assert_eq!(harmed(&|folder| harm(folder, &webhook()), &["--quick"]), ["outbox"]);
}

/// Somebody who had asked to be told before anything happened, and was told nothing.
fn webhook() -> String {
    let endpoint = Endpoint {
        id: EndpointId(1),
        tenant: Tenant::default_tenant(),
        url: "https://customer.example/hook".to_owned(),
        events: [EventType::Completed].into(),
        secret: Secret::new([1; 32]),
        previous: None,
        created_at: Timestamp(1),
    };
    let (id, json) = (endpoint.id, serde_json::to_string(&endpoint).expect("JSON"));
    format!(
        "INSERT INTO endpoints VALUES ('{id}', 'default', 'https://customer.example', '{json}')"
    )
}

/// Writes a fenced object, as any program may.
async fn put(stage: &Stage, held: &AcquireResponse) {
    let address = stage.cluster.address();
    let request = format!(
        "PUT /v1/objects/reports/august.txt HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: text/plain\r\ncontent-length: 6\r\nfencing-token: {}\r\n\
         fencing-lease: {}\r\n\r\naugust",
        held.token, held.lease
    );
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

async fn acquire(stage: &Stage) -> AcquireResponse {
    let holder = "host-1".to_owned();
    let wish = AcquireRequest { holder, ttl_ms: Some(60_000), wait_ms: 0, request_id: None };
    stage.client().acquire_lock("nightly", &wish).await.expect("it is free")
}

#[tokio::test]
async fn locks_objects_and_inputs_are_looked_at_and_nothing_is_touched() {
    let mut stage = Stage::set().await;
    let source = stage.dir.path().join("source.mp4");
    std::fs::write(&source, b"a source that nobody renders").expect("written");
    stage.submit("slow", &source).await;
    let first = acquire(&stage).await;
    let pair = PairWire { token: first.token, lease: first.lease };
    stage.client().release_lock("nightly", &pair).await.expect("released");
    put(&stage, &acquire(&stage).await).await;
    let served = stage.cluster.server_dir();
    assert_eq!(broken(&served, &[]), [""; 0], "while it is served");
    stage.cluster.kill_server().await.expect("the server ends");
    let (_, report) = audit(&served, &[]);
    let counts = ["jobs", "locks", "objects", "blobs"].map(|name| report[name].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(1), Some(2)], "{report:#}");

    let mut serial = 0;
    let mut harmed = |harm: &dyn Fn(&Path), more: &[&str]| {
        serial += 1;
        let folder = stage.dir.path().join(format!("copy-{serial}"));
        copy(&served, &folder);
        harm(&folder);
        // What an upload left is a server's matter.
        let left = folder.join("blobs/arriving/left-behind");
        std::fs::write(&left, b"half").expect("written");
        let found = broken(&folder, more);
        assert!(left.exists(), "the audit removed a file");
        found
    };
    let gone = |digest: String| {
        move |folder: &Path| std::fs::remove_file(output_file(folder, &digest)).expect("gone")
    };
    let digest = |bytes: &[u8]| palisade_core::Digest::of(bytes).to_string();
    let input = gone(digest(b"a source that nobody renders"));
    assert_eq!(harmed(&input, &["--quick"]), ["inputs"]);
    assert_eq!(harmed(&gone(digest(b"august")), &["--quick"]), ["objects"]);
    let sql = [
        ("DELETE FROM blobs", &["objects", "inputs"][..]),
        ("DELETE FROM locks", &["locks", "locks"]),
        ("UPDATE objects SET fence = 1", &["fence", "fence"]),
        ("UPDATE locks SET fence = 1", &["locks", "fence", "fence"]),
        ("UPDATE locks SET token = NULL, holding = NULL", &["locks"]),
        (
            "DROP INDEX lock_grants_open; UPDATE lock_grants SET closed_at_ms = NULL, \
             close_reason = NULL",
            &["locks"],
        ),
        ("UPDATE objects SET last = 'not JSON'", &["readable"]),
    ];
    for (sql, expected) in sql {
        let mut found = harmed(&|folder| harm(folder, sql), &["--quick"]);
        let mut expected: Vec<_> = expected.to_vec();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{sql}");
    }
}
