//! Measures the PostgreSQL store beside a queue written by hand, on the same empty database.
//!
//! `cargo run --release -p palisade-store --features postgres --example bench_postgres -- URL
//! [hand|single|batch|waiting|beats]…`
//!
//! Without a name, everything runs. A cycle is submit, claim and complete of one job with a
//! parameter of 200 bytes. Drop the database afterwards.

mod bench {
    pub(crate) mod load;
    #[expect(dead_code, reason = "the floor is SQLite's")]
    pub(crate) mod report;
}

use std::{sync::Arc, time::Duration};

use bench::{
    load::{Load, WallClock},
    report::{Stopwatch, say},
};
use palisade_store::postgres::{Address, PostgresOptions, PostgresStore};
use tokio_postgres::NoTls;

const SPAN: Duration = Duration::from_secs(5);

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("name a database: postgres:///name?host=/folder")?;
    let chosen: Vec<_> = arguments.collect();
    let wanted = |name: &str| chosen.is_empty() || chosen.iter().any(|one| one == name);
    if wanted("hand") {
        by_hand(&url).await?;
    }
    let store =
        PostgresStore::open(PostgresOptions::new(Address::parse(&url)?, Arc::new(WallClock)));
    let load = Arc::new(Load::over(store.await?).await);
    if wanted("batch") {
        for clients in [1, 4] {
            cycles(&load, clients, 100).await;
        }
    }
    if wanted("single") {
        for clients in [1, 32] {
            cycles(&load, clients, 1).await;
        }
    }
    if wanted("beats") {
        beats(&load).await;
    }
    if wanted("waiting") {
        let mut there = 0;
        for waiting in [1_000, 100_000, 1_000_000] {
            backlog(&load, waiting, &mut there).await;
        }
    }
    Ok(())
}

async fn cycles(load: &Arc<Load>, clients: usize, size: usize) {
    let watch = Stopwatch::start();
    let mut set = tokio::task::JoinSet::new();
    for client in 0..clients {
        let load = Arc::clone(load);
        set.spawn(async move {
            let mut cycles = 0;
            while watch.elapsed() < SPAN {
                load.submit(size).await;
                let grants = load.claim(&format!("worker-{client}"), size).await;
                cycles += load.complete(grants).await;
            }
            cycles
        });
    }
    let done: u64 = set.join_all().await.into_iter().sum();
    say(&format!("the store, by {size}, {clients} clients"), done, &watch, "cycles");
}

/// 100,000 leases of 100 sessions, each renewed five times.
async fn beats(load: &Load) {
    let mut held = Vec::new();
    for session in 0..100 {
        load.submit(1_000).await;
        let worker = format!("holder-{session}");
        held.push((worker.clone(), load.claim(&worker, 1_000).await));
    }
    let watch = Stopwatch::start();
    let mut renewed = 0;
    for seq in 1..=5 {
        for (worker, grants) in &held {
            renewed += load.beat(worker, seq, grants).await;
        }
    }
    say("renewals of 100,000 leases", renewed, &watch, "renewals");
}

async fn backlog(load: &Load, waiting: u64, there: &mut u64) {
    let watch = Stopwatch::start();
    let missing = waiting.saturating_sub(*there);
    for _ in 0..missing / 1_000 {
        load.submit(1_000).await;
    }
    say(&format!("submits until {waiting} wait"), missing, &watch, "submits");
    let watch = Stopwatch::start();
    let mut done = 0;
    while watch.elapsed() < SPAN {
        // Refilled as it is emptied, so that the queue stays as long as it is.
        load.submit(100).await;
        let grants = load.claim("worker", 100).await;
        done += load.complete(grants).await;
    }
    *there = waiting;
    say(&format!("cycles by 100, {waiting} waiting"), done, &watch, "cycles");
}

const TABLE: &str = "DROP TABLE IF EXISTS by_hand; CREATE TABLE by_hand (id bigserial PRIMARY KEY, \
    payload text NOT NULL, state text NOT NULL DEFAULT 'queued', \
    run_at timestamptz NOT NULL DEFAULT now(), token bigint); \
    CREATE INDEX ON by_hand (run_at, id) WHERE state = 'queued'; \
    CREATE SEQUENCE IF NOT EXISTS by_hand_token";

/// What one would write by hand: a queue in one table, `SKIP LOCKED`, batches of 100.
async fn by_hand(url: &str) -> Outcome {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(TABLE).await?;
    for clients in [1, 4] {
        let watch = Stopwatch::start();
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..clients {
            let url = url.to_owned();
            set.spawn(async move { one_by_hand(&url, watch).await.expect("the database answers") });
        }
        let done: u64 = set.join_all().await.into_iter().sum();
        say(&format!("by hand, by 100, {clients} clients"), done, &watch, "cycles");
    }
    Ok(())
}

async fn one_by_hand(url: &str, watch: Stopwatch) -> Result<u64, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    let setting = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan";
    client.batch_execute(setting).await?;
    let insert =
        client.prepare("INSERT INTO by_hand (payload) SELECT * FROM unnest($1::text[])").await?;
    let claim = client
        .prepare(
            "UPDATE by_hand SET state = 'running', token = nextval('by_hand_token') \
             WHERE id IN (SELECT id FROM by_hand WHERE state = 'queued' AND run_at <= now() \
             ORDER BY run_at, id LIMIT 100 FOR UPDATE SKIP LOCKED) RETURNING id, token",
        )
        .await?;
    let complete = client
        .prepare(
            "UPDATE by_hand b SET state = 'complete' FROM unnest($1::bigint[], $2::bigint[]) \
             AS d (id, token) WHERE b.id = d.id AND b.token = d.token AND b.state = 'running'",
        )
        .await?;
    let payloads: Vec<String> = (0..100).map(|number| format!("{number:0>200}")).collect();
    let mut done = 0;
    while watch.elapsed() < SPAN {
        client.execute(&insert, &[&payloads]).await?;
        let rows = client.query(&claim, &[]).await?;
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let tokens: Vec<i64> = rows.iter().map(|row| row.get(1)).collect();
        done += client.execute(&complete, &[&ids, &tokens]).await?;
    }
    Ok(done)
}
