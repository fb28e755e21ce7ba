//! Runs the model checker: `explore all|WORLD [--break RULE]`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use palisade_lab::explore::{self, World};

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let named = |world: &World| arguments[0] == "all" || world.name() == arguments[0];
    let broken = arguments.iter().position(|word| word == "--break");
    let config = explore::Config {
        worlds: World::ALL.into_iter().filter(named).collect(),
        broken: broken.map(|at| arguments[at + 1].parse().expect("a rule")),
        ..explore::Config::default()
    };
    print!("{}", explore::run(&config).text());
}
