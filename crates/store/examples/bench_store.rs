//! Measures the SQLite store by itself, on a folder of this machine's disk.
//!
//! `cargo run --release -p palisade-store --example bench_store -- FOLDER [floor|single|batch|beats|waiting]…`
//!
//! Without a name, everything runs. A cycle is submit, claim and complete of one job with a
//! parameter of 200 bytes; everything is on the disk before it is answered.

mod bench {
    pub(crate) mod load;
    pub(crate) mod report;
}

use std::{path::Path, sync::Arc, time::Duration};

use bench::{
    load::{Load, WallClock},
    report::{Laps, Stopwatch, say},
};
use palisade_store::sqlite::SqliteStore;

const TASKS: usize = 32;
const SPAN: Duration = Duration::from_secs(5);
/// Claims that count, and those before them, where the claims alone are measured.
const ROUNDS: u64 = 300;
const WARM_UP_ROUNDS: u64 = 100;

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a folder for the stores")?;
    let chosen: Vec<_> = arguments.collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|one| one == name);
    let folder = Path::new(&folder);
    if wanted("floor") {
        bench::report::floor(&folder.join("floor"))?;
    }
    if wanted("single") {
        single(&folder.join("single")).await?;
    }
    if wanted("batch") {
        batches(&folder.join("batch")).await?;
    }
    if wanted("beats") {
        beats(&folder.join("beats")).await?;
    }
    if wanted("waiting") {
        for waiting in [1_000, 100_000, 1_000_000] {
            backlog(&folder.join(format!("waiting-{waiting}")), waiting).await?;
        }
    }
    Ok(())
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn open(folder: &Path) -> Result<Arc<Load>, Box<dyn std::error::Error>> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    let store = SqliteStore::open(folder, Arc::new(WallClock))?;
    Ok(Arc::new(Load::over(store).await))
}

async fn single(folder: &Path) -> Outcome {
    for tasks in [1, TASKS] {
        let load = open(folder).await?;
        let watch = Stopwatch::start();
        let mut set = tokio::task::JoinSet::new();
        for task in 0..tasks {
            let load = Arc::clone(&load);
            set.spawn(async move {
                let mut cycles = 0_u64;
                while watch.elapsed() < SPAN {
                    load.submit(1).await;
                    let grants = load.claim(&format!("worker-{task}"), 1).await;
                    cycles += load.complete(grants).await;
                }
                cycles
            });
        }
        let cycles: u64 = set.join_all().await.into_iter().sum();
        say(&format!("single commands, {tasks} clients"), cycles, &watch, "cycles");
    }
    Ok(())
}

async fn batches(folder: &Path) -> Outcome {
    for clients in [1, 4] {
        let load = open(folder).await?;
        let watch = Stopwatch::start();
        let mut set = tokio::task::JoinSet::new();
        for client in 0..clients {
            let load = Arc::clone(&load);
            set.spawn(async move {
                let mut cycles = 0;
                while watch.elapsed() < SPAN {
                    load.submit(100).await;
                    let grants = load.claim(&format!("worker-{client}"), 100).await;
                    cycles += load.complete(grants).await;
                }
                cycles
            });
        }
        let cycles: u64 = set.join_all().await.into_iter().sum();
        say(&format!("batches of 100, {clients} clients"), cycles, &watch, "cycles");
    }
    Ok(())
}

/// 100,000 leases of 100 sessions, each renewed once in life and then ten times.
async fn beats(folder: &Path) -> Outcome {
    let load = open(folder).await?;
    let mut held = Vec::new();
    for session in 0..100 {
        load.submit(1_000).await;
        let worker = format!("worker-{session}");
        held.push((worker.clone(), load.claim(&worker, 1_000).await));
    }
    let watch = Stopwatch::start();
    let mut renewed = 0;
    for seq in 1..=10 {
        for (worker, grants) in &held {
            renewed += load.beat(worker, seq, grants).await;
        }
    }
    say("renewals of 100,000 leases", renewed, &watch, "renewals");
    let watch = Stopwatch::start();
    drop(load);
    let store = SqliteStore::open(folder, Arc::new(WallClock))?;
    say("restart with 100,000 leases", 100_000, &watch, "leases");
    let load = Load::over(store).await;
    let watch = Stopwatch::start();
    let mut renewed = 0;
    for (worker, grants) in &held {
        renewed += load.beat(worker, 11, grants).await;
    }
    say("first renewals of a life", renewed, &watch, "renewals");
    Ok(())
}

async fn backlog(folder: &Path, waiting: u64) -> Outcome {
    let load = open(folder).await?;
    let watch = Stopwatch::start();
    for _ in 0..waiting / 1_000 {
        load.submit(1_000).await;
    }
    say(&format!("submits until {waiting} wait"), waiting, &watch, "submits");
    // Refilled as it is emptied; the claims alone are measured, once all that is read anyway is in
    // memory.
    let mut claims = Laps::default();
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        load.submit(100).await;
        let watch = Stopwatch::start();
        let grants = load.claim("worker", 100).await;
        if round >= WARM_UP_ROUNDS {
            claims.add(grants.len() as u64, &watch);
        }
        load.complete(grants).await;
    }
    claims.say(&format!("claims of 100, {waiting} waiting"), "jobs");
    let watch = Stopwatch::start();
    let mut set = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let load = Arc::clone(&load);
        set.spawn(async move {
            let mut done = 0;
            while watch.elapsed() < SPAN {
                // Refilled as it is emptied, so that the queue stays as long as it is.
                load.submit(1).await;
                let grants = load.claim(&format!("worker-{task}"), 1).await;
                done += load.complete(grants).await;
            }
            done
        });
    }
    let done: u64 = set.join_all().await.into_iter().sum();
    say(&format!("single cycles, {TASKS} clients, {waiting} waiting"), done, &watch, "cycles");
    Ok(())
}
