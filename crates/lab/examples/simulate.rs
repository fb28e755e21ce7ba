//! Runs the simulator: `simulate DESIGN|all FIRST-SEED SEEDS [--break RULE] [--timeline]`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use palisade_lab::{designs::Design, sim};

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let designs = match arguments[0].as_str() {
        "all" => Design::ALL.to_vec(),
        name => vec![name.parse().expect("a design")],
    };
    let broken = arguments.iter().position(|word| word == "--break");
    let config = sim::Config {
        designs,
        seed: arguments[1].parse().expect("a seed"),
        seeds: arguments[2].parse().expect("a count"),
        broken: broken.map(|at| arguments[at + 1].parse().expect("a rule")),
        sqlite_every: u64::from(arguments.iter().any(|word| word == "--sqlite")),
        ..sim::Config::default()
    };
    if arguments.iter().any(|word| word == "--timeline") {
        print!("{}", sim::timeline(config.setting(config.designs[0], config.seed)));
        return;
    }
    let report = sim::run(&config);
    for found in report.found.iter().take(10) {
        println!("{}", found.replay);
        for what in &found.what {
            println!("    {what}");
        }
    }
    if arguments.iter().any(|word| word == "--json") {
        println!("{}", serde_json::to_string(&report).expect("a report is data"));
    } else {
        print!("{}\n{}\n", report.table(), report.sentence());
    }
}
