//! The one binary: parses the command line and hands on to the command's own room.
//!
//! Must not know: business rules.

mod args;
mod commands;
mod diagnose;
mod edge;
mod exit;
mod logs;
mod output;
mod signals;
mod span;

use clap::Parser;

/// The hidden verb under which the worker starts this program again, to watch over a render.
const NANNY: &str = "nanny";

fn main() -> std::process::ExitCode {
    let mut words = std::env::args_os().skip(1);
    // Before anything else: a nanny has its own way with threads and signals.
    if words.next().is_some_and(|word| word == NANNY) {
        return palisade_worker::process::nanny_main(words);
    }
    let args = args::Args::parse();
    let json = args.common.json;
    match commands::run(args) {
        Ok(code) => code,
        Err(error) => exit::report(&error, json),
    }
}
