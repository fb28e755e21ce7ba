//! Time, and what it came to.

use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Measures elapsed time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures, it does not decide")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Prints a rate.
#[expect(clippy::print_stdout, reason = "what a benchmark is for")]
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(crate) fn say(what: &str, count: u64, watch: &Stopwatch, unit: &str) {
    let seconds = watch.elapsed().as_secs_f64();
    println!("{what:56} {:>10.0} {unit}/s", count as f64 / seconds);
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
    Ok(())
}
