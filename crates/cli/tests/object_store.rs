//! Artefacts in a bucket: real processes, a real render, an S3 server on loopback.

mod common;
#[allow(dead_code, reason = "the tests of the artefacts use all of it")]
#[path = "../../artefacts/src/bucket/tests/servers.rs"]
mod servers;

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use common::{PROGRAM, Stage, completed};
use palisade_core::{Digest, manifest::Output};
use palisade_lab::drill::{Process, WorkerOptions, wait_for};
use servers::ObjectServer;

/// Where what a test waits for is overdue. Generous: a slow machine is no fault.
const LIMIT: Duration = Duration::from_mins(2);

/// A cluster whose processes have the bucket's keys in their environment.
struct Bucket {
    server: ObjectServer,
    url: String,
}

impl Bucket {
    async fn make() -> Option<Self> {
        let server = ObjectServer::moto()?;
        let made = http(server.port, "PUT /films HTTP/1.1", "").await;
        assert!(made.contains("200"), "the bucket is made: {made}");
        let url = format!("s3://films/exports?endpoint={}&allow_http=true", server.url());
        Some(Self { server, url })
    }

    /// What stands in the bucket, by the server's own list.
    async fn list(&self) -> String {
        http(self.server.port, "GET /films?list-type=2 HTTP/1.1", "").await
    }
}

/// One plain request, whose answer is read to its end: no client that follows addresses.
async fn http(port: u16, line: &str, headers: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let request = format!(
        "{line}\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

/// A program that is the binary under test with the bucket's keys in its environment: tests run
/// many to a process, so the environment of their own is not theirs to change.
fn program_with_keys(dir: &std::path::Path) -> PathBuf {
    let path = dir.join("palisade-with-keys");
    let script = format!(
        "#!/bin/sh\nAWS_ACCESS_KEY_ID=tests AWS_SECRET_ACCESS_KEY=of-tests exec '{PROGRAM}' \"$@\"\n"
    );
    std::fs::write(&path, script).expect("the program is written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, executable).expect("it may be run");
    path
}

fn files_below(folder: &std::path::Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

/// Whoever asks the server for bytes is sent on to the bucket.
async fn the_server_points_at_the_bucket(
    bucket: &Bucket,
    stage: &Stage,
    job: &str,
    output: &Output,
) {
    // Whoever asks the server is sent on to the bucket; who wants it from the server gets it.
    let port = stage.cluster.address().port();
    let path = format!("/v1/jobs/{job}/outputs/{}", output.name);
    let answer = http(port, &format!("GET {path} HTTP/1.1"), "Range: bytes=0-9\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 307"), "{answer}");
    assert!(answer.contains(&format!("location: {}/films/exports/", bucket.server.url())));
    let head = http(port, &format!("HEAD {path} HTTP/1.1"), "").await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("etag: "), "{head}");
    let known = format!("If-None-Match: \"{}\"\r\n", output.digest);
    let answer = http(port, &format!("GET {path} HTTP/1.1"), &known).await;
    assert!(answer.starts_with("HTTP/1.1 304"), "what needs no bytes is told here: {answer}");
    let range = "Range: bytes=0-9\r\n";
    let answer = http(port, &format!("GET {path}?redirect=no HTTP/1.1"), range).await;
    assert!(answer.starts_with("HTTP/1.1 206"), "{answer}");
}

async fn the_client_fetches_what_was_made(stage: &Stage, job: &str, output: &Output) {
    let fetched = stage.dir.path().join("fetched.mp4");
    let words = ["get", "--server", &stage.cluster.url(), job, "-o"].map(str::to_owned);
    let words: Vec<_> = words.into_iter().chain([fetched.display().to_string()]).collect();
    let log = stage.dir.path().join("get.log");
    let mut get = Process::start("get", PROGRAM.as_ref(), &words, &[], &log).expect("it starts");
    assert!(get.ended().await.expect("it ends").0.success(), "{}", get.log());
    let bytes = std::fs::read(&fetched).expect("it was fetched");
    assert_eq!(Digest::of(&bytes), output.digest, "what was made is what came");
}

/// The worker writes to the bucket itself, the client fetches from there; the server's disk holds
/// no byte of it. When the job's time is over, the bucket has no byte of it either.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_export_lives_in_the_bucket_and_nowhere_else() {
    let Some(bucket) = Bucket::make().await else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = program_with_keys(dir.path());
    let flags = ["--artefacts", bucket.url.as_str()];
    let mut stage = Stage::set_by(&program, dir, &flags).await;
    let clip = stage.clip("clip.mp4", 2).await;
    let how = WorkerOptions {
        more: vec!["--artefacts".to_owned(), "auto".to_owned()],
        ..WorkerOptions::default()
    };
    let worker = stage.worker_with("worker", how);
    let job = stage.submit("h264-720p", &clip).await.job;
    let job = stage.over(&job).await;
    assert_eq!((job.state.as_str(), completed(&job)), ("complete", 1), "{}", worker.log());
    let output = job.completion.as_ref().expect("complete").manifest.outputs[0].clone();

    // The bytes are in the bucket, under their own name, and not on the server's disk.
    let listed = bucket.list().await;
    assert!(listed.contains(&format!("exports/blobs/{}/", output.digest)), "{listed}");
    assert_eq!(files_below(&stage.cluster.server_dir().join("blobs")), 0, "no blob is on disk");

    the_server_points_at_the_bucket(&bucket, &stage, &job.id, &output).await;
    the_client_fetches_what_was_made(&stage, &job.id, &output).await;

    // The server is killed; the next one lets jobs go at once, and collects what they kept.
    drop(worker);
    stage.cluster.kill_server().await.expect("it ends");
    let _next = serve_without_mercy(&stage, &program, &bucket.url);
    wait_for("the output to be gone", LIMIT, async || {
        let listed = bucket.list().await;
        let is_there = listed.contains(&output.digest.to_string());
        if is_there || !listed.contains("200 OK") { Err(listed) } else { Ok(()) }
    })
    .await
    .expect("what nobody keeps is cleared away");
    let source = Digest::of(&std::fs::read(&clip).expect("the clip")).to_string();
    assert!(bucket.list().await.contains(&source), "the input is pinned for a day, and stays");
    let port = stage.cluster.address().port();
    let gone = format!("GET /v1/jobs/{}/outputs/{} HTTP/1.1", job.id, output.name);
    let answer = http(port, &gone, "").await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    stage.client().job(&job.id).await.expect("its record stays");
}

/// Another server on the same records and the same address, for which every job's time is over.
fn serve_without_mercy(stage: &Stage, program: &std::path::Path, url: &str) -> Process {
    let data = stage.cluster.server_dir().display().to_string();
    let address = stage.cluster.address().to_string();
    let recipes = stage.dir.path().join("recipes").display().to_string();
    let words = ["serve", "--data", &data, "--listen", &address, "--recipes", &recipes];
    let more = ["--artefacts", url, "--keep-jobs", "1ms", "--collect-after", "1ms"];
    let often = ["--collect-every", "100ms"];
    let words = words.into_iter().chain(more).chain(often).map(str::to_owned);
    let log = stage.dir.path().join("next-server.log");
    Process::start("next server", program, &words.collect::<Vec<_>>(), &[], &log)
        .expect("it starts")
}

/// Through the server instead, by a worker that does not see the bucket.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_worker_without_keys_brings_its_output_through_the_server() {
    let Some(bucket) = Bucket::make().await else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = program_with_keys(dir.path());
    let flags = ["--artefacts", bucket.url.as_str(), "--presign", "off"];
    let stage = Stage::set_by(&program, dir, &flags).await;
    let clip = stage.clip("clip.mp4", 2).await;
    let worker = stage.worker("worker");
    let job = stage.submit("h264-720p", &clip).await.job;
    let job = stage.over(&job).await;
    assert_eq!(job.state, "complete", "{}", worker.log());
    let output = job.completion.as_ref().expect("complete").manifest.outputs[0].clone();
    let listed = bucket.list().await;
    assert!(listed.contains(&format!("exports/blobs/{}/", output.digest)), "{listed}");
    let path = format!("/v1/jobs/{}/outputs/{}", job.id, output.name);
    let port = stage.cluster.address().port();
    let answer = http(port, &format!("GET {path} HTTP/1.1"), "Range: bytes=0-9\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 206"), "{answer}");
}

/// What a start says of an address that cannot be used: a person reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_place_that_cannot_be_used_is_refused_at_the_start_by_name() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let data = dir.path().join("data").display().to_string();
    let start = |url: &str| {
        let words = ["serve", "--data", &data, "--listen", "127.0.0.1:0", "--artefacts", url];
        let words: Vec<_> = words.map(str::to_owned).into();
        let log = dir.path().join(format!("log-{}", Digest::of(url.as_bytes())));
        Process::start("serve", PROGRAM.as_ref(), &words, &[], &log).expect("it starts")
    };
    for (url, said) in [
        ("s3://films?secret_access_key=hunter2", "environment"),
        ("ftp://films", "s3://BUCKET/PREFIX"),
    ] {
        let mut process = start(url);
        let ended = process.ended().await.expect("it ends");
        let log = process.log();
        assert!(!ended.0.success() && log.contains(said), "{url}: {log}");
        assert!(!log.contains("hunter2"), "{log}");
    }
}

/// A server that is given other artefacts than its store has would find none of the blobs; two
/// stores that are given the same ones would each collect what the other keeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn artefacts_of_another_place_or_of_another_store_are_refused_at_the_start() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let here = |name: &str| dir.path().join(name).display().to_string();
    let count = std::cell::Cell::new(0);
    let start = |data: &str, artefacts: &str, more: &[&str]| {
        count.set(count.get() + 1);
        let words = ["serve", "--data", &here(data), "--listen", "127.0.0.1:0", "--artefacts"];
        let place = format!("file://{}", here(artefacts));
        let words = words.into_iter().chain([place.as_str()]).chain(more.iter().copied());
        let words: Vec<_> = words.map(str::to_owned).collect();
        let log = dir.path().join(format!("log-{}", count.get()));
        Process::start("serve", PROGRAM.as_ref(), &words, &[], &log).expect("it starts")
    };
    let serves = async |mut process: Process| {
        wait_for("the server", LIMIT, async || {
            let log = process.log();
            if log.contains("serving at") { Ok(()) } else { Err(log) }
        })
        .await
        .expect("it serves");
        process.terminate();
        assert!(process.ended().await.expect("it ends").0.success(), "{}", process.log());
    };
    let refused = async |mut process: Process, said: &str| {
        let ended = process.ended().await.expect("it ends");
        assert_eq!(ended.0.code(), Some(2), "{}", process.log());
        assert!(process.log().contains(said), "{}", process.log());
    };
    serves(start("one", "films", &[])).await;
    serves(start("one", "films", &[])).await;
    refused(start("one", "others", &[]), "is not where this store's artefacts are").await;
    refused(start("two", "films", &[]), "belongs to another store").await;
    serves(start("one", "others", &["--artefacts-moved"])).await;
    refused(start("one", "films", &[]), "is not where this store's artefacts are").await;
}
