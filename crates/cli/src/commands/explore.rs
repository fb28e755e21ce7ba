//! `explore`: every schedule of small worlds, over the real rules.

use std::process::ExitCode;

use palisade_lab::{
    designs::Design,
    explore::{self, Config, World},
    sabotage::Sabotage,
};

use crate::{exit, output};

/// Flags of `explore`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExploreArgs {
    /// A design, or `all`: lock-forever, lease, lease-heartbeat, lease-fenced, queue,
    /// lying-dispatch. `queue` takes Palisade's parts along, each in a world of its own.
    #[arg(long, default_value = "all", value_name = "DESIGN")]
    design: String,
    /// One small world by its name: a design's, or attempts, backups, histories, wishes, blobs,
    /// restarts, servers, objects, locks, registers, delivery.
    #[arg(long, value_name = "WORLD", conflicts_with = "design")]
    world: Option<World>,
    /// Build a deliberate fault into the lab's copy of the rules, to see that it is noticed.
    #[arg(long = "break", value_name = "RULE")]
    broken: Option<Sabotage>,
    /// How many states of a world are looked at most.
    #[arg(long, default_value_t = 3_000_000, value_name = "N")]
    states: u64,
}

pub(crate) fn run(args: &ExploreArgs, json: bool) -> anyhow::Result<ExitCode> {
    let worlds = match (args.world, args.design.as_str()) {
        (Some(world), _) => vec![world],
        (None, "all") => World::ALL.to_vec(),
        (None, name) => World::of(name.parse::<Design>()?),
    };
    let config =
        Config { worlds, broken: args.broken, states_max: args.states, ..Config::default() };
    let report = explore::run(&config);
    if json {
        output::json(&report);
    } else {
        output::line(&report.text());
    }
    let well = report.is_as_expected();
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}
