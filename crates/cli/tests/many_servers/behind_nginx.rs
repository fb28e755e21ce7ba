//! One address before three servers: nginx, as `deploy/nginx.conf` has it but for its ports.

use std::{
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
};

use palisade_api::{
    Client,
    client::{EventsFrom, Upload},
    wire::{AcquireRequest, PairWire},
};
use palisade_core::{Digest, digest::Hasher};
use palisade_lab::drill::{Process, WorkerOptions, wait_for};

use crate::{
    all_is_done_once,
    common::{LIMIT, Stage, completed},
    crowd::Crowd,
    faults, three_servers,
};

const CONFIGURATION: &str = include_str!("../../../../deploy/nginx.conf");
const JOBS: u64 = 2_000;
/// Large enough to stream.
const FILE_BYTES: usize = 100_000_000;

/// nginx, and the one address.
struct Front {
    process: Process,
    client: Client,
    url: String,
}

fn nginx() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join("nginx")).find(|program| program.is_file());
    if found.is_none() {
        eprintln!("\n*** SKIPPED: there is no nginx: run scripts/setup test\n");
        assert!(std::env::var_os("CI").is_none(), "nothing is skipped there");
    }
    found
}

/// The configuration with other places; each of them is in it.
fn configuration(stage: &Stage, home: &Path, address: &str) -> String {
    let mut text = CONFIGURATION.to_owned();
    let mut replace = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is in the configuration");
        text = text.replace(from, to);
    };
    for (index, port) in [7070, 7071, 7072].into_iter().enumerate() {
        let server = stage.cluster.address_of(index).to_string();
        replace(&format!("server 127.0.0.1:{port}"), &format!("server {server}"));
    }
    replace("listen 127.0.0.1:7000", &format!("listen {address}"));
    let home = home.display();
    replace("/tmp/nginx.pid", &format!("{home}/nginx.pid"));
    // Where anybody may write.
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders = folders.map(|name| format!("{name}_temp_path {home}/{name};")).join(" ");
    replace("http {", &format!("http {{ access_log off; {folders}"));
    text
}

impl Front {
    /// Three servers and nginx before them. None: something is not there.
    async fn of_three() -> Option<(Stage, Self)> {
        let program = nginx()?;
        // What is kept goes through it, too.
        let (stage, _) = three_servers(&["--presign", "off"]).await?;
        let home = stage.dir.path().join("nginx");
        std::fs::create_dir(&home).expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr());
        let address = free.expect("a free address").to_string();
        let file = home.join("nginx.conf");
        std::fs::write(&file, configuration(&stage, &home, &address)).expect("a file");
        let (folder, file) = (home.display().to_string(), file.display().to_string());
        let log = home.join("errors.log").display().to_string();
        let alone = "daemon off; master_process off;";
        let args = ["-p", &folder, "-c", &file, "-e", &log, "-g", alone].map(str::to_owned);
        let process = Process::start("nginx", &program, &args, &[], &home.join("nginx.log"));
        let process = process.expect("it starts");
        let url = format!("http://{address}");
        let client = Client::new(&url).expect("an address");
        let ready = async || client.ready().await.map_err(|error| error.to_string());
        let serves = wait_for("nginx to serve", LIMIT, ready).await;
        serves.unwrap_or_else(|error| panic!("{error}\n{}", process.log()));
        Some((stage, Self { process, client, url }))
    }
}

/// A large file, and its digest.
fn large(stage: &Stage) -> PathBuf {
    let path = stage.dir.path().join("large.bin");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
    let pieces = FILE_BYTES / 32;
    for piece in 0..pieces {
        let bytes = Digest::of(&piece.to_le_bytes());
        file.write_all(bytes.as_bytes()).expect("there is room");
    }
    file.flush().expect("there is room");
    path
}

async fn there_and_back(stage: &Stage, client: &Client) {
    let (digest, size_bytes) =
        client.upload(&large(stage), &Upload::Input).await.expect("it arrives");
    assert_eq!(size_bytes, FILE_BYTES as u64);
    let mut download = client.blob(digest).await.expect("it is there");
    let mut hasher = Hasher::new();
    while let Some(piece) = download.next().await.expect("all of it comes") {
        hasher.update(&piece);
    }
    assert_eq!(hasher.finish(), digest);
}

/// A page that it served may act, as its browser says where it is from.
async fn its_pages_may_act(front: &Front, job: &str) {
    let cancel = reqwest::Client::new()
        .post(format!("{}/v1/jobs/{job}/cancel", front.url))
        .header("origin", &front.url)
        .header("content-type", "application/json")
        .body("{\"all\":true}");
    let answer = cancel.send().await.expect("it answers");
    let (status, text) = (answer.status(), answer.text().await.expect("a text"));
    assert!(status.is_success(), "{status}: {text}");
}

fn wish(who: &str) -> AcquireRequest {
    AcquireRequest {
        holder: who.to_owned(),
        ttl_ms: Some(600_000),
        wait_ms: 600_000,
        request_id: Some(format!("request-{who}")),
    }
}

async fn until_waiting(client: &Client, who: &[&str]) {
    let look = async || {
        let lock = client.lock("door").await.map_err(|error| error.to_string())?;
        let waiting: Vec<_> = lock.waiters.into_iter().map(|waiter| waiter.holder).collect();
        if waiting == who { Ok(()) } else { Err(format!("{waiting:?}")) }
    };
    wait_for("those who wait", LIMIT, look).await.expect("they wait");
}

/// Whoever hangs up at nginx is gone for the server behind it, and the next one gets the lock.
async fn a_lock_is_waited_for(client: &Client) {
    let held = client.acquire_lock("door", &wish("alice")).await.expect("it is free");
    let wait = |who: &'static str| {
        let client = client.clone();
        tokio::spawn(async move { client.acquire_lock("door", &wish(who)).await })
    };
    let bob = wait("bob");
    until_waiting(client, &["bob"]).await;
    let carol = wait("carol");
    until_waiting(client, &["bob", "carol"]).await;
    bob.abort();
    until_waiting(client, &["carol"]).await;
    let pair = PairWire { token: held.token, lease: held.lease };
    client.release_lock("door", &pair).await.expect("it is hers");
    let carol = carol.await.expect("no panic").expect("it is carol's");
    assert!(carol.token > held.token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_before_three_servers_carries_files_waits_and_streams() {
    let Some((mut stage, front)) = Front::of_three().await else { return };
    there_and_back(&stage, &front.client).await;
    a_lock_is_waited_for(&front.client).await;
    let mut events = front.client.events(EventsFrom::Now, true).await.expect("it streams");
    let clip = stage.clip("clip.mp4", 6).await;
    let unwanted = stage.submit("liar", &clip).await;
    let told = events.next().await.expect("it is told at once").expect("it goes on");
    assert_eq!(told.event.job().map(|job| job.to_string()), Some(unwanted.job.clone()));
    its_pages_may_act(&front, &unwanted.job).await;
    // A worker that knows nothing else, while one server is killed and another one asked to end.
    let how = WorkerOptions { url: Some(front.url.clone()), ..WorkerOptions::default() };
    let worker = stage.worker_with("worker", how);
    let submitted = stage.submit("slow", &clip).await;
    stage.event(&worker, "progress", &submitted.job).await;
    stage.cluster.kill_server_at(0).await.expect("it ends");
    stage.cluster.server_at(1).terminate();
    let ended = stage.cluster.server_at(1).ended().await.expect("it ends");
    assert_eq!(ended.0.code(), Some(0), "nothing of what it was asked keeps it");
    let job = front.client.wait(&submitted.job, LIMIT).await.expect("the last one answers");
    assert_eq!((job.state.as_str(), job.attempts.len()), ("complete", 1), "{job:#?}");
    assert_eq!(completed(&job), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_one_address_servers_killed_every_second_lose_nothing() {
    let Some((mut stage, mut front)) = Front::of_three().await else { return };
    let crowd = Crowd::gather(&stage, JOBS).await.at(&front.url);
    let working = crowd.work(8);
    faults::until_over(&mut stage.cluster, &crowd, JOBS).await;
    for client in working {
        client.await.expect("a client does not panic");
    }
    all_is_done_once(&stage, &crowd, JOBS).await;
    assert!(!front.process.has_ended());
}
