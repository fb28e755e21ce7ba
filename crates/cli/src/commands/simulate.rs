//! `simulate`: five designs and a lying one under the same faults, thousands of schedules of them.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use palisade_lab::{
    designs::Design,
    sabotage::Sabotage,
    sim::{self, Config, HEAD, Report},
};

use crate::{exit, output};

/// How many violations are told before the rest is only counted.
const TOLD_MAX: usize = 10;

/// Flags of `simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// The design, or `all`: lock-forever, lease, lease-heartbeat, lease-fenced, queue,
    /// lying-dispatch.
    #[arg(long, default_value = "all", value_name = "DESIGN")]
    design: String,
    /// How many seeds.
    #[arg(long, default_value_t = 1_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Draw one run, with this seed.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seed", "seeds"])]
    timeline: Option<u64>,
    /// Build a deliberate fault into the lab's copy of the rules, to see that it is noticed.
    #[arg(long = "break", value_name = "RULE")]
    broken: Option<Sabotage>,
    /// Every so many-th seed keeps its records in SQLite; 0: none does.
    #[arg(long, default_value_t = 20, value_name = "N")]
    sqlite_every: u64,
    /// How many runs at a time; the result does not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Write the comparison as a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: &SimulateArgs, json: bool) -> anyhow::Result<ExitCode> {
    let config = config(args)?;
    if let Some(seed) = args.timeline {
        for design in &config.designs {
            output::line(&sim::timeline(config.setting(*design, seed)));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let report = sim::run(&config);
    if let Some(file) = &args.svg {
        std::fs::write(file, report.svg())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    complain(&report);
    if json {
        output::json(&report);
    } else {
        let mut table = output::table(HEAD);
        for row in report.rows() {
            table.add_row(row);
        }
        output::line(&table.to_string());
        output::line(&report.sentence());
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn config(args: &SimulateArgs) -> anyhow::Result<Config> {
    let designs = match args.design.as_str() {
        "all" => Design::ALL.to_vec(),
        name => vec![name.parse()?],
    };
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, std::num::NonZero::get));
    Ok(Config {
        designs,
        seed: args.seed,
        seeds: args.seeds,
        broken: args.broken,
        threads,
        sqlite_every: args.sqlite_every,
    })
}

/// Violations, each with the command that shows it again.
fn complain(report: &Report) {
    for found in report.found.iter().take(TOLD_MAX) {
        output::complain(&format!("VIOLATION, replay with: {}", found.replay));
        for what in &found.what {
            output::complain(&format!("  {what}"));
        }
    }
    let rest = report.found.len().saturating_sub(TOLD_MAX);
    if rest > 0 {
        output::complain(&format!("and {rest} more seeds"));
    }
}
