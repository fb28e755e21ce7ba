//! Time, and what it came to.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// Measures elapsed time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Instant,
    cpu_before: Duration,
}

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures, it does not decide")]
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), cpu_before: cpu() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Time that was measured in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Laps {
    count: u64,
    elapsed: Duration,
    cpu: Duration,
}

impl Laps {
    /// So many, within this watch's time.
    pub(crate) fn add(&mut self, count: u64, watch: &Stopwatch) {
        self.count += count;
        self.elapsed += watch.elapsed();
        self.cpu += cpu().saturating_sub(watch.cpu_before);
    }

    /// Prints what all of it came to.
    pub(crate) fn say(&self, what: &str, unit: &str) {
        print(what, unit, self.count, self.elapsed, self.cpu);
    }
}

/// What this process has used of the processors, all its threads together.
fn cpu() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("not negative")
}

/// Prints a rate, and what one of them costs the processors.
pub(crate) fn say(what: &str, count: u64, watch: &Stopwatch, unit: &str) {
    print(what, unit, count, watch.elapsed(), cpu().saturating_sub(watch.cpu_before));
}

#[expect(clippy::print_stdout, reason = "what a benchmark is for")]
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn print(what: &str, unit: &str, count: u64, elapsed: Duration, cpu: Duration) {
    let cpu_us = cpu.as_secs_f64() * 1e6 / count as f64;
    let rate = count as f64 / elapsed.as_secs_f64();
    println!("{what:56} {rate:>10.0} {unit}/s {cpu_us:>8.1} us CPU each");
}

/// What the disk allows: commits of one small row by bare SQLite.
pub(crate) fn floor(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(folder)?;
    let connection = rusqlite::Connection::open(folder.join("floor.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch("CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b TEXT)")?;
    let watch = Stopwatch::start();
    let mut commits = 0;
    while watch.elapsed() < Duration::from_secs(2) {
        let mut insert = connection.prepare_cached("INSERT INTO t (b) VALUES (?1)")?;
        insert.execute(["x".repeat(200)])?;
        commits += 1;
    }
    say("floor: bare SQLite, one-row commits", commits, &watch, "commits");
    for together in [32, 100] {
        cycles(&connection, together)?;
    }
    Ok(())
}

/// What SQLite allows: insert, update to running, update to complete, some jobs a transaction, one
/// row and one index each.
fn cycles(
    connection: &rusqlite::Connection,
    together: i64,
) -> Result<(), Box<dyn std::error::Error>> {
    connection.execute_batch(
        "DROP TABLE IF EXISTS jobs;
         CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT, token INTEGER, payload TEXT);
         CREATE INDEX waiting ON jobs (id) WHERE state = 'queued'",
    )?;
    let payload = "x".repeat(200);
    let watch = Stopwatch::start();
    let mut first = 0;
    while watch.elapsed() < Duration::from_secs(3) {
        for step in [
            "INSERT INTO jobs VALUES (?1, 'queued', NULL, ?2)",
            "UPDATE jobs SET state = 'running', token = ?1, payload = ?2 WHERE id = ?1",
            "UPDATE jobs SET state = 'complete', payload = ?2 WHERE id = ?1",
        ] {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            let mut statement = connection.prepare_cached(step)?;
            for id in first..first + together {
                statement.execute(rusqlite::params![id, payload])?;
            }
            connection.execute_batch("COMMIT")?;
        }
        first += together;
    }
    let done = u64::try_from(first)?;
    say(&format!("floor: bare SQLite, cycles by {together}"), done, &watch, "cycles");
    Ok(())
}
